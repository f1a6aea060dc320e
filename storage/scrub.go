package storage

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Scrubber reads a whole log from the device and verifies every frame that
// counts, while the log is in use. Damage is recorded in the Log, which it
// quarantines, and returned. Its methods are for one goroutine; how fast it goes is the caller's affair.
type Scrubber struct {
	log *Log
	cur cursor

	number uint64   // of the next segment to verify, or of seg
	seg    *segment // pinned
	file   vfs.File

	end  wal.LSN // of the last frame that was seen
	off  int64   // its offset
	view view
}

// NewScrubber returns a scrubber at the log's oldest end.
func (l *Log) NewScrubber() *Scrubber { return &Scrubber{log: l} }

// Step verifies about so many bytes, at least a frame, and returns how many it
// read and the damage it met. done: the scrubber has reached the end of what
// was durable when it got there; the next Step begins anew. An error means
// that nothing can be told (the log is closed, a file cannot be opened for want of descriptors).
func (s *Scrubber) Step(bytes int64) (read int64, damage []Damage, done bool, err error) {
	for read < bytes {
		if s.seg == nil {
			more, d, err := s.enter()
			damage = append(damage, d...)
			if err != nil || !more {
				s.number = 0
				return read, damage, err == nil, err
			}
			if s.seg == nil {
				continue
			}
		}
		before := s.cur.off
		d, err := s.frame()
		damage = append(damage, d...)
		if err != nil {
			s.leave()
			s.number = 0
			return read, damage, false, err
		}
		read += max(s.cur.off-before, frameHeaderBytes)
	}
	return read, damage, false, nil
}

// Close lets go of the segment. The scrubber may be used again.
func (s *Scrubber) Close() error {
	s.leave()
	s.number = 0
	return nil
}

// enter pins and opens the next segment. It returns false behind the last one.
func (s *Scrubber) enter() (bool, []Damage, error) {
	l := s.log
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false, nil, ErrClosed
	}
	if s.number == 0 || s.number < l.table[0].number {
		s.number, s.end = l.table[0].number, l.oldest()
	}
	i := l.table.index(s.number)
	if i < 0 {
		l.mu.Unlock()
		return false, nil, nil
	}
	seg := l.table[i]
	s.number++
	if seg.missing {
		s.end = l.table.liveEnd(i)
		l.mu.Unlock()
		return true, nil, nil // known since the log was opened
	}
	seg.pins++
	s.seg, s.off = seg, sectorBytes
	l.mu.Unlock()

	file, err := l.cfg.FS.OpenRead(l.file(segmentName(seg.number)))
	if errors.Is(err, fs.ErrNotExist) {
		d := s.note(sectorBytes, "the segment is missing", s.end, EndUnknown)
		s.leave()
		return true, []Damage{d}, nil
	}
	if err != nil {
		s.leave()
		s.number--
		return false, nil, err
	}
	s.file = file
	l.mu.Lock()
	surveyed, used := seg.surveyed, seg.used
	l.mu.Unlock()
	if !surveyed {
		if err := l.survey(&s.cur, seg, file); err != nil {
			s.leave()
			return false, nil, err
		}
	}
	s.cur.start(file, seg.number, seg.nonce, sectorBytes, seg.firstSeq, used)
	s.cur.win.uncached = true
	var damage []Damage
	if h, err := decodeSegmentHeader(s.cur.win.bytes(0, sectorBytes)); err != nil || h.number != seg.number || h.nonce != seg.nonce {
		if err := s.cur.win.failure(); err != nil {
			s.leave()
			return false, nil, err
		}
		if err == nil {
			err = fmt.Errorf("the segment header is that of segment %d with another nonce", h.number)
		}
		damage = append(damage, s.note(0, err.Error(), 0, 0))
	}
	return true, damage, nil
}

func (s *Scrubber) leave() {
	if s.seg == nil {
		return
	}
	if s.file != nil {
		_ = s.file.Close() // opened for reading
	}
	s.log.mu.Lock()
	s.seg.pins--
	s.log.mu.Unlock()
	s.seg, s.file = nil, nil
}

// frame verifies the next frame, and leaves the segment behind its last one.
func (s *Scrubber) frame() (damage []Damage, err error) {
	l := s.log
	l.mu.Lock()
	lastSeq, used := s.seg.lastSeq, s.seg.used
	s.view.truncs = s.seg.truncs
	l.mu.Unlock()
	c := &s.cur
	c.win.extend(used)
	if c.seq > lastSeq && c.seq != 0 {
		s.leave()
		return nil, nil
	}
	f, ok := c.next()
	if !ok || f.seq > lastSeq {
		begin := min(s.end, bound(s.view.truncs, s.off))
		f, ok = c.resync()
		if err := c.win.failure(); err != nil {
			return nil, err
		}
		if !ok || f.seq > lastSeq {
			d := s.note(c.off, s.why("frames are gone from here on"), begin, EndUnknown)
			s.leave()
			return []Damage{d}, nil
		}
		damage = append(damage, s.note(f.off, s.why("frames are gone in front of this offset"), begin, f.lsn))
	}
	if _, intact := c.payload(f); !intact {
		if err := c.win.failure(); err != nil {
			return damage, err
		}
		begin, end := f.lsn, min(f.end(), bound(s.view.truncs, f.off))
		reason := "data does not match its checksum"
		if f.kind == kindState {
			reason = "state does not match its checksum"
		}
		damage = append(damage, s.note(f.off, s.why(reason), begin, end))
	}
	s.end, s.off = f.end(), f.off
	return damage, nil
}

func (s *Scrubber) why(reason string) string {
	if s.cur.win.cause != nil {
		return reason + ": " + s.cur.win.cause.Error()
	}
	return reason
}

// note records damage of the current segment, reduced to what that contributes to the log.
func (s *Scrubber) note(off int64, reason string, begin, end wal.LSN) Damage {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.table.index(s.seg.number); i >= 0 {
		begin, end = max(begin, l.table[i].floor, l.oldest()), min(end, l.table.liveEnd(i), l.flush)
	}
	d := Damage{File: segmentName(s.seg.number), Offset: off, Reason: reason}
	if begin < end {
		d.Begin, d.End = begin, end
	}
	l.addDamage(d)
	return d
}
