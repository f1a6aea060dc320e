package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"syscall"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
)

// NeedsPrepare reports whether Prepare has something to do. It only looks at memory.
func (l *Log) NeedsPrepare() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil && (l.prepared == nil || l.prepared.reserve) || len(l.retired) > 0
}

// Prepare makes the log's next segment ready: a file found at opening, a
// trimmed segment, or a new file, zero-filled; and on a full disk, if a state
// could not be saved otherwise, a spare. It blocks on the disk and is meant for
// a background goroutine, one at a time, while appends go on.
//
// An error harms nothing: Space answers SpaceNone until a later Prepare
// succeeds, so call it again after a while, or once space was made.
func (l *Log) Prepare() error {
	l.prepareMu.Lock()
	defer l.prepareMu.Unlock()
	l.closeRetired()
	l.mu.Lock()
	refused, ready := l.err != nil, l.prepared
	l.mu.Unlock()
	switch {
	case refused || ready != nil && !ready.reserve:
		return nil
	case ready != nil:
		return l.upgradeSpare(ready)
	}
	if err := l.anchor(); err != nil {
		return fmt.Errorf("cannot prepare a segment in %s: %w", l.cfg.Dir, err)
	}
	s, f, event, err := l.prepareNext()
	if err != nil && l.needsSpare() {
		if spare, sf, spareErr := l.prepareSpare(); spareErr == nil {
			l.offer(spare, sf, SegmentSpare, true)
			return fmt.Errorf("the next segment came from the spares and takes state only: %w", err)
		} else {
			err = errors.Join(err, spareErr)
		}
	}
	if err != nil {
		l.mu.Lock()
		l.full = true
		l.mu.Unlock()
		return fmt.Errorf("cannot prepare a segment in %s: %w", l.cfg.Dir, err)
	}
	l.offer(s, f, event, false)
	return nil
}

// anchor makes the names durable that were found at opening. The process before may have
// ended between a rename and the sync of the directory: what is written into
// such a file would be lost with its name by a power cut.
func (l *Log) anchor() error {
	if l.anchored {
		return nil
	}
	dirs := []string{l.cfg.Dir, path.Dir(path.Clean(l.cfg.Dir))}
	if l.cfg.Spares != nil {
		dirs = append(dirs, l.cfg.Spares.dir)
	}
	for _, dir := range dirs {
		if err := l.cfg.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	l.anchored = true
	return nil
}

// offer makes s the log's next segment.
func (l *Log) offer(s *segment, f vfs.File, event SegmentEvent, full bool) {
	s.reserve = full
	s.marks = make([]mark, 0, marksPerSegment)
	l.mu.Lock()
	l.prepared, l.preparedAs, l.full = s, f, full
	l.mu.Unlock()
	l.cfg.Observer.SegmentEvent(event, s.size)
}

func (l *Log) closeRetired() {
	l.mu.Lock()
	files := l.retired
	l.retired = nil
	l.mu.Unlock()
	for _, f := range files {
		f.DropCache() // what is read again, if ever, is not read soon; the next segment takes its pages
		_ = f.Close() // sealed and synced
	}
}

// prepareNext readies segment nextNumber in the cheapest way there is. Whatever it
// leaves half done has no valid head, or not that segment's name.
func (l *Log) prepareNext() (*segment, vfs.File, SegmentEvent, error) {
	l.mu.Lock()
	number := l.nextNumber
	size := l.nextBytes()
	found := len(l.leftover) > 0 && l.leftover[0] == number
	if found {
		l.leftover = l.leftover[1:]
	}
	var old *segment
	if len(l.garbage) > 0 && l.garbage[0].pins == 0 && l.garbage[0].size >= l.cfg.segmentBytesMin() {
		old = l.garbage[0]
	}
	l.mu.Unlock()

	name := segmentName(number)
	if found {
		if s, f, err := l.renew(name, number); err == nil {
			return s, f, SegmentPrepared, nil
		}
		// Its sync failed or it is too small: a new file takes its place, by rename.
	} else if old != nil && old.size >= size/2 && old.size <= l.cfg.SegmentBytes {
		if s, f, err := l.recycle(old, number); err == nil {
			return s, f, SegmentRecycled, nil
		}
		old = nil
	}
	nonce, err := l.nonce()
	if err != nil {
		return nil, nil, "", err
	}
	if have := l.fileBytes(name + prepareSuffix); have >= l.cfg.segmentBytesMin() && have < size {
		size = have // an aborted attempt's; its blocks may be the only ones on a full disk
	}
	h := segmentHeader{number: number, nonce: nonce, size: size}
	f, err := zeroFile(l.cfg.FS, l.cfg.Dir, name, size, h)
	if err == nil {
		return &segment{number: number, nonce: nonce, size: size}, f, SegmentPrepared, nil
	}
	if old != nil && IsNoSpace(err) {
		if s, f, err := l.recycle(old, number); err == nil {
			return s, f, SegmentRecycled, nil
		}
	}
	return nil, nil, "", err
}

// fileBytes is the size of a file in the timeline's directory, 0 if there is none.
func (l *Log) fileBytes(name string) int64 {
	f, err := l.cfg.FS.OpenRead(l.file(name))
	if err != nil {
		return 0
	}
	defer f.Close()
	n, err := f.Size()
	if err != nil {
		return 0
	}
	return n &^ (sectorBytes - 1)
}

// nextBytes is the size of the next new segment. It is called with mu held.
func (l *Log) nextBytes() int64 {
	size := l.cfg.FirstSegmentBytes
	if s := l.table.newest(); s != nil {
		size = max(size, 2*s.size)
	}
	if s := l.w.seg; s != nil {
		size = max(size, 2*s.size)
	}
	return min(size, l.cfg.SegmentBytes)
}

// recycle turns a trimmed segment into segment number. Its header is fresh and
// durable before it gets its new name, so no frame of its earlier life can be taken for one of this log.
func (l *Log) recycle(old *segment, number uint64) (*segment, vfs.File, error) {
	from, to := segmentName(old.number), segmentName(number)
	s, f, err := l.renew(from, number)
	if err != nil {
		return nil, nil, err
	}
	if err = l.cfg.FS.Rename(l.file(from), l.file(to)); err == nil {
		err = l.cfg.FS.SyncDir(l.cfg.Dir)
	}
	if err != nil {
		_ = f.Close() // the cause is err
		return nil, nil, err
	}
	l.mu.Lock()
	l.garbage = l.garbage[1:]
	l.mu.Unlock()
	return s, f, nil
}

// renew gives an existing file a fresh header, synced.
func (l *Log) renew(name string, number uint64) (*segment, vfs.File, error) {
	f, err := l.cfg.FS.Open(l.file(name))
	if err != nil {
		return nil, nil, err
	}
	s, err := l.renewFile(f, number)
	if err != nil {
		_ = f.Close() // the cause is err
		return nil, nil, err
	}
	return s, f, nil
}

func (l *Log) renewFile(f vfs.File, number uint64) (*segment, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	size &^= sectorBytes - 1
	if size < l.cfg.segmentBytesMin() {
		return nil, fmt.Errorf("a file of %d bytes is too small for a segment", size)
	}
	nonce, err := l.nonce()
	if err != nil {
		return nil, err
	}
	h := segmentHeader{number: number, nonce: nonce, size: size}
	if _, err := f.WriteAt(h.encode(), 0); err != nil {
		return nil, err
	}
	if err := f.Datasync(); err != nil {
		return nil, err
	}
	return &segment{number: number, nonce: nonce, size: size}, nil
}

// nonce draws the nonce of a segment's life. It is never 0, which a zeroed sector would match.
func (l *Log) nonce() (uint64, error) {
	for {
		var b [8]byte
		if _, err := io.ReadFull(l.cfg.Rand, b[:]); err != nil {
			return 0, fmt.Errorf("no randomness for a segment's nonce: %w", err)
		}
		if n := binary.LittleEndian.Uint64(b[:]); n != 0 {
			return n, nil
		}
	}
}

// needsSpare reports whether not even a state could be saved now.
func (l *Log) needsSpare() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg.Spares != nil && (l.w.seg == nil || !l.room(l.w.seg, l.w.off, 0, 0))
}

// prepareSpare claims a spare by renaming it to a temporary name here, and
// only then makes it a segment of this log.
func (l *Log) prepareSpare() (*segment, vfs.File, error) {
	l.mu.Lock()
	number := l.nextNumber
	l.mu.Unlock()
	tmp := segmentName(number) + prepareSuffix
	if err := l.cfg.Spares.take(l.cfg.Dir, tmp); err != nil {
		return nil, nil, err
	}
	l.anchored = false // the file is in neither directory for sure
	if err := l.anchor(); err != nil {
		return nil, nil, err
	}
	s, f, err := l.renew(tmp, number)
	if err != nil {
		return nil, nil, err
	}
	fsys := l.cfg.FS
	if err = fsys.Rename(l.file(tmp), l.file(segmentName(number))); err == nil {
		err = fsys.SyncDir(l.cfg.Dir)
	}
	if err != nil {
		_ = f.Close() // the cause is err
		return nil, nil, err
	}
	return s, f, nil
}

// upgradeSpare lets the prepared spare take data once another spare could be
// made in its place: the disk has space again.
func (l *Log) upgradeSpare(ready *segment) error {
	n, err := l.cfg.Spares.Count()
	if err == nil {
		err = l.cfg.Spares.Fill(n + 1)
	}
	if err != nil {
		return fmt.Errorf("the segment prepared in %s is a spare and takes state only: %w", l.cfg.Dir, err)
	}
	l.mu.Lock()
	ready.reserve, l.full = false, false
	l.mu.Unlock()
	return nil
}

// IsNoSpace reports whether err says that the disk or the quota is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
