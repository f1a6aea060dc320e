package storage

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// A batch is one vectored write that begins at a sector:
//
//	[head] data data ... data [seal] zeroes to the sector's end
//
// followed by one fdatasync. The head is there when the batch is the first of
// its segment, the seal when it is the last. A state that is saved is a batch
// of one state frame, which is the head if it opens a segment.
//
// Readers and State see none of it before Sync has made it durable.

const (
	// Payloads up to copyBytesMax are copied next to their headers, which is
	// cheaper than a vector entry each, up to copyBatchBytesMax in one batch.
	copyBytesMax      = 2 << 10
	copyBatchBytesMax = 1 << 20
)

// writer is the state of the writing goroutine.
type writer struct {
	// Written with Log.mu held, because Prepare looks at them.
	seg *segment // the open segment; nil: the next write begins the prepared one
	off int64    // where its next batch begins, a multiple of 512

	file vfs.File // the open segment's descriptor; nil also after Idle

	seq     uint64    // of the last frame written
	durable uint64    // of the last frame synced; durable <= seq
	end     wal.LSN   // write LSN
	state   *logState // as last written; never changed, only replaced

	// What the running batch changes, published by Sync.
	dirty    bool // something was written
	begun    bool // seg was begun
	sealed   bool // seg ends with this batch
	cuts     []truncation
	cutTo    wal.LSN // lowest end that the batch cut the log to
	marks    []mark
	unproved bool // data was written since the last state frame

	// The batch under construction: buf holds headers, states and small
	// payloads and does not move while it is built; iov is what is written.
	buf   []byte
	run   int // where in buf the bytes not yet in iov begin
	parts [][]byte
	iov   [][]byte
	total int64
}

// Space says whether a batch of frames data frames with bytes of payload, or
// with frames 0 one state frame, can be written now. It only looks at memory.
// A poisoned, closed or quarantined log has no space.
func (l *Log) Space(frames, bytes int) wal.Space {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return wal.SpaceNone
	}
	w := &l.w
	// What came from the spares takes data only once a successor from elsewhere is ready.
	next := l.prepared != nil && !(frames > 0 && l.prepared.reserve)
	switch {
	case w.seg != nil && (next || frames == 0 || !w.seg.reserve) && l.room(w.seg, w.off, frames, bytes):
		return wal.SpaceOpen
	case w.seg != nil && next:
		return wal.SpaceNext
	case w.seg == nil && next && l.room(l.prepared, l.firstBatch(), frames, bytes):
		return wal.SpaceOpen
	case l.full:
		return wal.SpaceNone
	}
	return wal.SpaceWait
}

// firstBatch is how far a segment is filled by its header and the largest head.
func (l *Log) firstBatch() int64 { return sectorBytes + l.cfg.stateFrameBytesMax() }

// room reports whether a batch fits into s from off on. A state may use the
// reserve; both leave room for the largest seal.
func (l *Log) room(s *segment, off int64, frames, bytes int) bool {
	seal := l.cfg.stateFrameBytesMax()
	if frames == 0 {
		return off+l.cfg.stateFrameBytesMax()+seal <= s.size
	}
	data := alignSector(int64(bytes) + int64(frames)*(frameHeaderBytes+7))
	return off+data+max(seal, l.cfg.StateReserveBytes) <= s.size
}

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
	w.end = end
	w.unproved = w.unproved || len(chunks) > 0
	if seal {
		w.seal()
	}
	return l.put()
}

// Seal ends the open segment with nothing but a seal frame. It is followed by Sync.
func (l *Log) Seal() error { return l.Append(0, l.w.state.Commit, nil, true) }

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

// layout starts a batch whose frames take at most so many bytes of buf, besides
// two states of stateBytes and the padding.
func (w *writer) layout(n, stateBytes int) {
	n += 2*int(frameBytes(stateBytes)) + sectorBytes
	if cap(w.buf) < n {
		w.buf = make([]byte, 0, n+n/4)
	}
	w.buf, w.run, w.parts, w.total = w.buf[:0], 0, w.parts[:0], 0
}

func (w *writer) dataFrame(term wal.Term, commit wal.LSN, c *wal.Chunk) {
	h := w.header(kindData, 0, len(c.Data))
	h.payloadCRC, h.term, h.lsn, h.commit = c.CRC, term, c.Begin, commit
	w.putHeader(&h)
	pad := -len(c.Data) & 7
	if len(c.Data) <= copyBytesMax && len(w.buf)+len(c.Data)+sectorBytes <= cap(w.buf) && len(w.buf) < copyBatchBytesMax {
		w.buf = append(w.buf, c.Data...)
	} else {
		w.parts = append(w.parts, w.buf[w.run:], c.Data)
		w.run = len(w.buf)
	}
	w.buf = append(w.buf, zeroes[:pad]...)
	w.total += frameBytes(len(c.Data))
}

func (w *writer) stateFrame(s *logState, end wal.LSN, flags uint8) {
	n := s.size()
	h := w.header(kindState, flags, n)
	h.term, h.lsn, h.commit = s.Term, end, s.Commit
	at := len(w.buf)
	w.buf = append(w.buf, zeroes[:frameHeaderBytes]...)
	w.buf = s.appendTo(w.buf)
	h.payloadCRC = checksum(w.buf[at+frameHeaderBytes:])
	h.put(w.buf[at:])
	w.buf = append(w.buf, zeroes[:-n&7]...)
	w.total += frameBytes(n)
}

func (w *writer) seal() {
	s := *w.state
	s.prevLow, s.prevTruncs = 0, 0
	w.state = &s
	w.stateFrame(&s, w.end, flagSeal)
	w.sealed, w.unproved = true, false
}

// header is a new frame's header, numbered, with what the open segment determines.
func (w *writer) header(kind, flags uint8, length int) frameHeader {
	w.seq++
	return frameHeader{
		nonce: w.seg.nonce, segment: w.seg.number, seq: w.seq, durable: w.durable,
		length: uint32(length), kind: kind, flags: flags,
	}
}

func (w *writer) putHeader(h *frameHeader) {
	n := len(w.buf)
	w.buf = w.buf[:n+frameHeaderBytes]
	h.put(w.buf[n:])
}

var zeroes [sectorBytes]byte

// put writes the batch that was laid out, padded to a sector.
func (l *Log) put() error {
	w := &l.w
	end := alignSector(w.total)
	w.buf = append(w.buf, zeroes[:end-w.total]...)
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
