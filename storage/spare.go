package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
)

// Spares is a directory of prepared segments that logs on a full disk may
// take, so that a vote can still be recorded and a log still be opened. One
// Spares serves all logs of a node; its methods may be called concurrently.
type Spares struct {
	fs    vfs.FS
	dir   string
	bytes int64

	mu sync.Mutex // held across the directory's I/O: taking a spare is rare
}

// NewSpares uses dir, which it makes if it is missing, for spares of bytes
// each (FirstSegmentBytes of the logs that will take them).
func NewSpares(fsys vfs.FS, dir string, bytes int64) (*Spares, error) {
	if bytes < 2*sectorBytes || bytes%sectorBytes != 0 {
		return nil, fmt.Errorf("spare size %d is not a multiple of %d bytes", bytes, sectorBytes)
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, err
	}
	if err := fsys.SyncDir(path.Dir(dir)); err != nil {
		return nil, err
	}
	return &Spares{fs: fsys, dir: dir, bytes: bytes}, nil
}

// Count is how many spares there are.
func (s *Spares) Count() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.list()
	return len(names), err
}

// Fill makes spares until there are n. It does nothing when there are, so it
// may be called often; ENOSPC leaves those there are.
func (s *Spares) Fill(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.list()
	if err != nil || len(names) >= n {
		return err
	}
	taken := make(map[string]bool, len(names))
	for _, name := range names {
		taken[name] = true
	}
	made := len(names)
	for i := uint64(1); made < n; i++ {
		name := segmentName(i)
		if taken[name] {
			continue
		}
		f, err := zeroFile(s.fs, s.dir, name, s.bytes, segmentHeader{size: s.bytes})
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		made++
	}
	return nil
}

// take moves a spare to name in dir, which is then this caller's alone; the
// move is not yet durable. ErrNoSegment if there is none.
func (s *Spares) take(dir, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.list()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no spare segment is left in %s: %w", s.dir, ErrNoSegment)
	}
	return s.fs.Rename(path.Join(s.dir, names[len(names)-1]), path.Join(dir, name))
}

// list returns the names of the complete spares. It is called with mu held.
func (s *Spares) list() ([]string, error) {
	entries, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, ok := parseSegmentName(e.Name); ok && !e.Dir && e.Size == s.bytes {
			names = append(names, e.Name)
		}
	}
	return names, nil
}

// zeroFile makes a segment file that is there under its name complete and
// durable, or not at all: its blocks are written, so that no later write or
// sync has to allocate. What an aborted attempt left under the temporary name
// is used again: on a full disk its blocks may be the only ones.
func zeroFile(fsys vfs.FS, dir, name string, size int64, h segmentHeader) (vfs.File, error) {
	tmp := path.Join(dir, name+prepareSuffix)
	f, err := fsys.Create(tmp)
	if errors.Is(err, fs.ErrExist) {
		f, err = fsys.Open(tmp)
		if err == nil {
			var have int64
			if have, err = f.Size(); err == nil && have > size {
				_ = f.Close() // to be removed
				if err = fsys.Remove(tmp); err == nil {
					f, err = fsys.Create(tmp)
				}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if err = fill(f, size, h); err == nil {
		if err = fsys.Rename(tmp, path.Join(dir, name)); err == nil {
			if err = fsys.SyncDir(dir); err == nil {
				return f, nil
			}
		}
	}
	_ = f.Close() // the cause is err
	_ = fsys.Remove(tmp)
	return nil, err
}

// fillSyncBytes is how much is synced at once: little enough not to be in the way
// of a batch, enough not to wait for a slow disk too often.
const fillSyncBytes = 4 << 20

// fill writes a whole segment file: header and zeroes, synced piece by piece. One
// sync of all of it would hold up the fdatasync of every batch that comes meanwhile.
func fill(f vfs.File, size int64, h segmentHeader) error {
	chunk := make([]byte, min(size, 1<<20))
	copy(chunk, h.encode())
	for off := int64(0); off < size; off += int64(len(chunk)) {
		chunk = chunk[:min(int64(len(chunk)), size-off)]
		if _, err := f.WriteAt(chunk, off); err != nil {
			return err
		}
		if end := off + int64(len(chunk)); end%fillSyncBytes == 0 || end == size {
			if err := f.Datasync(); err != nil {
				return err
			}
		}
		if off == 0 {
			clear(chunk[:sectorBytes])
		}
	}
	return nil
}
