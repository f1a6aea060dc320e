package storage

import (
	"errors"
	"fmt"
	"sort"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// segmentsMax bounds the table, so that two file names far apart cannot make
// it fill the memory. At 64 MiB a segment it is 64 TiB of log.
const segmentsMax = 1 << 20

// linkOlder puts the older segments that still matter before those that replay
// found. Only their heads are read: each head says what its predecessor held.
func (o *opening) linkOlder() error {
	recent := o.table
	newest := recent[0].number
	oldest := min(o.state.oldest, newest)
	for _, f := range o.files {
		if f.number < oldest {
			o.garbage = append(o.garbage, &segment{number: f.number, size: f.size})
		}
	}
	if newest-oldest > segmentsMax {
		o.note(Damage{File: segmentName(oldest), Reason: fmt.Sprintf("most segments up to %s are missing", segmentName(newest)), Begin: o.state.trim, End: EndUnknown})
		return &CorruptionError{Dir: o.cfg.Dir, Damage: o.damage, StateLost: true}
	}
	older := make(table, newest-oldest)
	next := &o.files[o.newest]
	for i := len(older) - 1; i >= 0; i-- {
		f, s, err := o.olderSegment(oldest+uint64(i), next)
		if err != nil {
			return err
		}
		older[i], next = s, f
	}
	o.table = nil
	for i, s := range older {
		if s.firstSeq == 0 && i > 0 {
			s.firstSeq = older[i-1].lastSeq + 1
		}
		o.table.add(s)
	}
	for _, s := range recent {
		o.table.add(s)
	}
	o.noteMissing(len(older))
	return nil
}

// olderSegment reads the head of segment number. next is the file of its
// successor, nil if that is missing.
func (o *opening) olderSegment(number uint64, next *segmentFile) (*segmentFile, *segment, error) {
	s := &segment{number: number}
	var f *segmentFile
	i := sort.Search(len(o.files), func(i int) bool { return o.files[i].number >= number })
	if i < len(o.files) && o.files[i].number == number {
		f = &o.files[i]
		defer o.release(i)
		if err := o.load(i); err != nil {
			return nil, nil, err
		}
		s.nonce, s.size, s.used = f.header.nonce, f.size, f.size
		switch {
		case f.bad != nil:
			o.note(Damage{File: f.name(), Reason: f.bad.Error()})
		case f.short != nil:
			o.note(Damage{File: f.name(), Offset: f.size, Reason: f.short.Error()})
		case f.head == nil:
			o.note(Damage{File: f.name(), Offset: sectorBytes, Reason: "the segment's head is damaged"})
		}
		if f.head != nil {
			s.firstSeq = f.first.seq
		}
	}
	s.missing = f == nil || f.bad != nil && f.head == nil
	switch {
	case next != nil && next.head != nil:
		s.low, s.lastSeq = next.head.prevLow, next.first.seq-1
		s.surveyed = next.head.prevTruncs == 0
	case s.missing:
		s.low, s.surveyed = EndUnknown, true // placed by noteMissing
	default:
		v := surveySegment(&o.cur, s, f.file, s.size)
		if err := o.cur.win.failure(); err != nil {
			return nil, nil, err
		}
		s.low, s.lastSeq, s.truncs, s.marks, s.surveyed = v.low, v.lastSeq, v.truncs, v.marks, true
		if s.firstSeq == 0 {
			s.firstSeq = v.firstSeq
		}
		// What the successor did to the log cannot be asked any more.
		o.note(Damage{File: segmentName(number + 1), Reason: "the segment's head is gone", Begin: v.commit, End: EndUnknown})
	}
	return f, s, nil
}

// noteMissing gives the damage that linkOlder noted its range, now that all
// floors are known, for the first n segments of the table.
func (o *opening) noteMissing(n int) {
	for i := range o.damage {
		d := &o.damage[i]
		number, ok := parseSegmentName(d.File)
		if k := o.table.index(number); ok && k >= 0 && k < n && d.End == EndUnknown {
			d.End = max(d.Begin, o.table.liveEnd(k))
		}
	}
	for i, s := range o.table[:n] {
		if s.missing {
			begin := max(s.floor, o.state.trim)
			o.note(Damage{File: segmentName(s.number), Reason: "the segment is missing", Begin: begin, End: max(begin, o.table.liveEnd(i))})
		}
	}
}

// surveyed is what a walk over all frames of a segment finds.
type surveyed struct {
	firstSeq, lastSeq uint64
	low, end, commit  wal.LSN
	truncs            []truncation
	marks             []mark
	gaps              int
}

// surveySegment walks s from its head to lastSeq (to the end of the unbroken
// run if that is 0), without verifying data.
func surveySegment(c *cursor, s *segment, file vfs.File, limit int64) surveyed {
	c.start(file, s.number, s.nonce, sectorBytes, s.firstSeq, limit)
	v := surveyed{low: EndUnknown}
	scratch := segment{size: s.size}
	for {
		f, ok := c.next()
		gap := !ok
		if gap {
			if v.lastSeq != 0 && s.lastSeq == 0 {
				break
			}
			if f, ok = c.resync(); !ok {
				break
			}
		}
		if s.lastSeq != 0 && f.seq > s.lastSeq {
			break // a torn tail, in which a frame may be whole behind one that is not
		}
		if gap {
			v.gaps++
		}
		if v.firstSeq == 0 {
			v.firstSeq = f.seq
			v.end = f.lsn
		}
		if f.kind == kindState && f.lsn < v.end {
			scratch.truncs = addTruncation(scratch.truncs, truncation{f.off, f.lsn})
			scratch.cutMarks(f.lsn)
		} else if f.kind == kindData {
			scratch.addMark(mark{f.lsn, f.off, f.seq})
		}
		v.low = min(v.low, f.lsn)
		v.end, v.lastSeq = f.end(), f.seq
		v.commit = max(v.commit, min(f.commit, v.end))
	}
	v.truncs, v.marks = scratch.truncs, scratch.marks
	return v
}

// survey learns the truncations within a segment that was written before this
// opening. Its reader needs them before it can believe any frame.
func (l *Log) survey(c *cursor, s *segment, file vfs.File) error {
	v := surveySegment(c, s, file, s.used)
	if err := c.win.failure(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.surveyed {
		return nil
	}
	s.surveyed = true
	s.truncs, s.marks = v.truncs, v.marks
	if v.gaps == 0 && v.low == s.low && v.lastSeq == s.lastSeq {
		return nil
	}
	// A truncation may be among what is gone, so no frame here can be believed.
	i := l.table.index(s.number)
	if i < 0 {
		return errors.New("the segment was trimmed meanwhile")
	}
	l.addDamage(Damage{File: segmentName(s.number), Reason: "frames are gone from a segment in which the log was truncated", Begin: s.floor, End: l.table.liveEnd(i)})
	return nil
}
