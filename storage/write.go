package storage

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// SaveState writes st as one state frame for a log that ends at end: the write
// LSN, or below it, which is the truncation to end. Everything written before
// was synced. It takes effect for readers, and in State, after Sync. st is not retained.
//
// Any error is final for this Log.
func (l *Log) SaveState(st *wal.State, end wal.LSN) error {
	if err := l.Err(); err != nil {
		return err
	}
	return l.saveState(st, end, l.w.state.trim, l.w.state.oldest)
}

func (l *Log) saveState(st *wal.State, end, trim wal.LSN, oldest uint64) error {
	w := &l.w
	s := &logState{State: st.Clone(), trim: trim, oldest: oldest}
	if err := l.checkState(s, end); err != nil {
		return l.fail(err)
	}
	if err := l.enter(); err != nil {
		return err
	}
	var flags uint8
	if w.begun {
		flags = flagHead
		w.seg.low = end
		l.linkBack(s)
	}
	w.layout(0, s.size())
	if end < w.end {
		w.cutTo = min(w.cutTo, end)
		if !w.begun {
			w.cuts = append(w.cuts, truncation{w.off, end})
		}
	}
	w.stateFrame(s, end, flags)
	w.state, w.end, w.unproved = s, end, false
	return l.put()
}

// checkState refuses a state that contradicts what was written before.
func (l *Log) checkState(s *logState, end wal.LSN) error {
	was := l.w.state
	switch n := s.size(); {
	case n > l.cfg.StateBytesMax:
		return &MisuseError{fmt.Sprintf("a state of %d bytes; the limit is %d", n, l.cfg.StateBytesMax)}
	case end > l.w.end:
		return &MisuseError{fmt.Sprintf("a state for a log that ends at %v, above the write LSN %v", end, l.w.end)}
	case end < was.Commit:
		return &MisuseError{fmt.Sprintf("truncation to %v, below the commit LSN %v", end, was.Commit)}
	case s.Term < was.Term:
		return &MisuseError{fmt.Sprintf("the term goes back from %d to %d", was.Term, s.Term)}
	case s.FirstLSN != was.FirstLSN:
		return &MisuseError{fmt.Sprintf("the first LSN changes from %v to %v", was.FirstLSN, s.FirstLSN)}
	}
	if err := s.validate(end); err != nil {
		return &MisuseError{err.Error()}
	}
	return nil
}

// Append writes chunks, contiguous from the write LSN and none of them empty or above the
// request limit, as data frames of term, with one write call. commit is stored
// in the frames as what was known to be committed. The data is not retained.
// With seal the batch ends this segment: a seal frame goes with the same write
// and the next batch begins the successor.
//
// Any error is final for this Log.
func (l *Log) Append(term wal.Term, commit wal.LSN, chunks []wal.Chunk, seal bool) error {
	if err := l.Err(); err != nil {
		return err
	}
	w := &l.w
	end := w.end
	copied := 0
	for i := range chunks {
		c := &chunks[i]
		if c.Begin != end || len(c.Data) == 0 || len(c.Data) > l.cfg.RequestBytesMax {
			return l.fail(&MisuseError{fmt.Sprintf("a chunk of %d bytes at %v; expected 1 to %d bytes at %v", len(c.Data), c.Begin, l.cfg.RequestBytesMax, end)})
		}
		if len(c.Data) <= copyBytesMax {
			copied += len(c.Data)
		}
		end = c.End()
	}
	if err := l.enter(); err != nil {
		return err
	}
	if seal && !l.successorReady() {
		return l.fail(&MisuseError{"a seal with no successor ready"})
	}
	if w.begun || seal {
		s := *w.state
		s.Commit = max(s.Commit, min(commit, w.end))
		w.state = &s
	}
	w.layout(len(chunks)*(frameHeaderBytes+8)+min(copied, copyBatchBytesMax), w.state.size())
	if w.begun {
		l.linkBack(w.state)
		w.stateFrame(w.state, w.end, flagHead)
	}
	for i := range chunks {
		c := &chunks[i]
		if len(w.marks) == 0 || w.off+w.total-w.marks[len(w.marks)-1].off >= w.seg.size/marksPerSegment {
			w.marks = append(w.marks, mark{c.Begin, w.off + w.total, w.seq + 1})
		}
		w.dataFrame(term, commit, c)
	}
	w.end, w.commit = end, max(w.commit, commit)
	w.unproved = w.unproved || len(chunks) > 0
	if seal {
		w.seal()
	}
	return l.put()
}

// Seal ends the open segment with nothing but a seal frame. It is followed by Sync.
func (l *Log) Seal() error { return l.Append(0, l.w.commit, nil, true) }

// enter makes sure that there is an open segment, beginning the prepared one if there is none.
func (l *Log) enter() error {
	w := &l.w
	if w.sealed {
		return l.fail(&MisuseError{"a write between a seal and its sync"})
	}
	if w.seg == nil {
		l.mu.Lock()
		if l.prepared == nil {
			l.mu.Unlock()
			return l.fail(ErrNoSegment)
		}
		w.seg, w.file = l.prepared, l.preparedAs
		l.prepared, l.preparedAs = nil, nil
		l.nextNumber++
		w.off = sectorBytes
		l.mu.Unlock()
		w.begun = true
		w.seg.firstSeq, w.seg.low, w.seg.surveyed = w.seq+1, w.end, true
	}
	if w.file == nil {
		f, err := l.cfg.FS.Open(l.file(segmentName(w.seg.number)))
		if err != nil {
			return l.fail(err)
		}
		w.file = f
	}
	return nil
}

// successorReady: a sealed segment without a successor would look as if that one were lost.
func (l *Log) successorReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.prepared != nil
}

// linkBack fills in what a head says of the segment before.
func (l *Log) linkBack(s *logState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if prev := l.table.newest(); prev != nil {
		s.prevLow = prev.low
		s.prevTruncs = uint32(len(prev.truncs))
	}
}

// put writes the batch that was laid out, padded to a sector.
func (l *Log) put() error {
	w := &l.w
	end := alignSector(w.total)
	padded := max(min(alignPage(w.off+end), w.seg.size)-w.off, end)
	n := len(w.buf)
	w.buf = w.buf[:n+int(padded-w.total)]
	clear(w.buf[n:])
	w.parts = append(w.parts, w.buf[w.run:])
	room := w.seg.size - w.off - end
	if room < 0 || !w.sealed && room < alignSector(frameBytes(w.state.size())) {
		return l.fail(&MisuseError{fmt.Sprintf("a batch of %d bytes at offset %d of %s, which holds %d and must leave room for a seal", end, w.off, segmentName(w.seg.number), w.seg.size)})
	}
	w.dirty = true
	w.iov = append(w.iov[:0], w.parts...) // the file may change what it is given
	err := w.file.WritevAt(w.iov, w.off)
	clear(w.parts)
	clear(w.iov)
	if err != nil {
		return l.fail(err)
	}
	l.mu.Lock()
	w.off += end
	l.write = w.end
	l.mu.Unlock()
	return nil
}

// Sync makes everything written so far durable with exactly one fdatasync,
// none if nothing was written. Its error is final for this Log.
func (l *Log) Sync() error {
	if err := l.Err(); err != nil {
		return err
	}
	if !l.w.dirty {
		return nil
	}
	if err := l.w.file.Datasync(); err != nil {
		return l.fail(err)
	}
	l.publish()
	return nil
}

// publish lets readers see what has become durable.
func (l *Log) publish() {
	w := &l.w
	s := w.seg
	w.durable, w.dirty = w.seq, false
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.begun {
		l.table.add(s)
	}
	if w.cutTo != EndUnknown {
		for _, t := range w.cuts {
			s.truncs = addTruncation(s.truncs, t)
		}
		s.cutMarks(w.cutTo)
		l.table.lower(w.cutTo)
		for _, r := range l.readers {
			r.cut = min(r.cut, w.cutTo)
		}
	}
	for _, m := range w.marks {
		s.addMark(m)
	}
	s.lastSeq, s.used = w.seq, w.off
	l.flush, l.saved = w.end, w.state
	if w.sealed {
		l.retired = append(l.retired, w.file)
		w.seg, w.file = nil, nil
		l.cfg.Observer.SegmentEvent(SegmentSealed, s.size)
	}
	w.begun, w.sealed, w.cutTo = false, false, EndUnknown
	w.cuts, w.marks = w.cuts[:0], w.marks[:0]
}
