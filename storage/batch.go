package storage

import (
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// A batch is one vectored write that begins at a sector:
//
//	[head] data data ... data [seal] zeroes to the page's end
//
// followed by one fdatasync. The head is there when the batch is the first of
// its segment, the seal when it is the last. A state that is saved is a batch
// of one state frame, which is the head if it opens a segment.
//
// The next batch begins at the next sector, within those zeroes. Whole pages are
// written so that the kernel never has to read one in that is not in its cache: a
// recycled segment's need not be.
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
	commit  wal.LSN   // highest that an append told of
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

// layout starts a batch whose frames take at most so many bytes of buf, besides
// two states of stateBytes and the padding.
func (w *writer) layout(n, stateBytes int) {
	n += 2*int(frameBytes(stateBytes)) + pageBytes + sectorBytes
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
