package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Suffixes of directories beside timelines. A dot is not allowed in a
// timeline's name, so none of them is one.
const (
	creatingSuffix    = ".creating"    // Create was interrupted: remove
	deletingSuffix    = ".deleting"    // Delete was interrupted: remove
	buildingSuffix    = ".building"    // a Rebuild that is not complete: remove
	readySuffix       = ".ready"       // a Rebuild that is complete: put in place
	quarantinedSuffix = ".quarantined" // replaced by a Rebuild; kept for people

	// FilledSuffix is that of a copy for reading only. Sweep leaves it alone and
	// no other function here opens it under the timeline's own name.
	FilledSuffix = ".filled"
)

// Create makes the directory of a new timeline whose state is st and whose log
// begins and ends at st.FirstLSN. When it returns, both are durable; after a crash at any
// point the directory is complete or absent. ErrExists if it is there. The
// parent directory is made if it is missing.
func Create(cfg Config, st wal.State) error { return CreateFrom(cfg, st, st.FirstLSN) }

// CreateFrom is Create for a log that begins and ends at from: what lies below
// counts as trimmed. st.Commit and st.Horizon are not above it.
func CreateFrom(cfg Config, st wal.State, from wal.LSN) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	parent := path.Dir(path.Clean(cfg.Dir))
	if err := cfg.FS.MkdirAll(parent); err != nil {
		return err
	}
	if err := cfg.FS.SyncDir(path.Dir(parent)); err != nil {
		return err
	}
	if there, err := exists(cfg.FS, cfg.Dir); err != nil {
		return err
	} else if there {
		// Perhaps since a moment ago, by a process that then ended.
		if err := cfg.FS.SyncDir(parent); err != nil {
			return err
		}
		return fmt.Errorf("%s: %w", cfg.Dir, ErrExists)
	}
	tmp := path.Clean(cfg.Dir) + creatingSuffix
	if err := removeTree(cfg.FS, tmp); err != nil {
		return err
	}
	if err := makeDir(cfg, tmp, &logState{State: st, trim: from, oldest: 1}, from); err != nil {
		return err
	}
	if err := cfg.FS.Rename(tmp, cfg.Dir); err != nil {
		return err
	}
	return cfg.FS.SyncDir(parent)
}

// makeDir makes dir with a first segment that holds one head and has no room
// for more: after opening, another segment is begun anyway.
func makeDir(cfg Config, dir string, s *logState, end wal.LSN) error {
	if err := s.validate(end); err != nil {
		return fmt.Errorf("cannot create %s: %w", cfg.Dir, err)
	}
	if s.size() > cfg.StateBytesMax {
		return fmt.Errorf("cannot create %s: its state takes %d bytes, at most %d are allowed", cfg.Dir, s.size(), cfg.StateBytesMax)
	}
	if err := cfg.FS.MkdirAll(dir); err != nil {
		return err
	}
	l := Log{cfg: cfg}
	nonce, err := l.nonce()
	if err != nil {
		return err
	}
	size := sectorBytes + alignSector(frameBytes(s.size()))
	b := make([]byte, 0, size)
	b = append(b, segmentHeader{number: 1, nonce: nonce, size: size}.encode()...)
	b = append(b, zeroes[:frameHeaderBytes]...)
	b = s.appendTo(b)
	h := frameHeader{
		payloadCRC: checksum(b[sectorBytes+frameHeaderBytes:]), nonce: nonce, segment: 1, seq: 1,
		term: s.Term, lsn: end, commit: s.Commit, length: uint32(s.size()), kind: kindState, flags: flagHead,
	}
	h.put(b[sectorBytes:])
	b = b[:size]
	f, err := cfg.FS.Create(path.Join(dir, segmentName(1)))
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Datasync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return cfg.FS.SyncDir(dir)
}

// Delete removes a timeline's directory, which must not be open. After a crash at any point it is
// there whole, or not at all (and Sweep removes the rest). ErrNotFound if there is none.
func Delete(fsys vfs.FS, dir string) error {
	dir = path.Clean(dir)
	if there, err := exists(fsys, dir); err != nil {
		return err
	} else if !there {
		return fmt.Errorf("%s: %w", dir, ErrNotFound)
	}
	tmp := dir + deletingSuffix
	if err := removeTree(fsys, tmp); err != nil {
		return err
	}
	if err := fsys.Rename(dir, tmp); err != nil {
		return err
	}
	if err := fsys.SyncDir(path.Dir(dir)); err != nil {
		return err
	}
	return removeTree(fsys, tmp)
}

// Sweep finishes what a crash interrupted among the timelines of tenant
// directory parent: creations and deletions are removed, a complete rebuild is put in its
// place. Call it before any timeline there is opened. Quarantined directories stay.
func Sweep(fsys vfs.FS, parent string) error {
	entries, err := fsys.ReadDir(parent)
	if err != nil {
		return err
	}
	// The names must be durable before anything under them goes: else a power
	// cut could bring a directory back under its old name with half its files.
	if err := fsys.SyncDir(parent); err != nil {
		return err
	}
	var failed error
	for _, e := range entries {
		name := path.Join(parent, e.Name)
		switch base, suffix := cutSuffix(e.Name); {
		case !e.Dir:
		case suffix == creatingSuffix, suffix == deletingSuffix, suffix == buildingSuffix,
			suffix == FilledSuffix+creatingSuffix, suffix == FilledSuffix+deletingSuffix:
			failed = errors.Join(failed, removeTree(fsys, name))
		case suffix == readySuffix:
			failed = errors.Join(failed, swapIn(fsys, path.Join(parent, base)))
		}
	}
	return failed
}

// cutSuffix splits a directory's name at its first dot.
func cutSuffix(name string) (base, suffix string) {
	if i := strings.IndexByte(name, '.'); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}

// exists reports whether there is a directory dir.
func exists(fsys vfs.FS, dir string) (bool, error) {
	_, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// removeTree removes a directory and the files in it, durably. It is no error
// if there is none.
func removeTree(fsys vfs.FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if e.Dir {
			err = removeTree(fsys, name)
		} else {
			err = fsys.Remove(name)
		}
		if err != nil {
			return err
		}
	}
	if err := fsys.Remove(dir); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(dir))
}
