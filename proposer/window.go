package proposer

import "github.com/seed7f3f3bb8/holdfast/wal"

// Bounds of a chunk. A window has at least four, so that it can take new bytes
// while old ones are given up.
const (
	chunkBytesMax = 1 << 20
	chunksMin     = 4
)

// window holds the end of the log, [begin, tail), in memory: what acceptors
// still have to be sent. It is guarded by its proposer's mutex.
type window struct {
	pool      *chunkPool
	chunksMax int

	// chunks lie in the order of their LSNs without a gap; all but the last are full.
	chunks []*chunk
	begin  wal.LSN // begin <= tail; the first byte held
	tail   wal.LSN // end of what is placed
}

func newWindow(bytes int) window {
	size := min(bytes/chunksMin, chunkBytesMax)
	if size > cutMultiple {
		size -= size % cutMultiple
	}
	n := bytes / size
	return window{pool: newChunkPool(size, n), chunksMax: n, chunks: make([]*chunk, 0, n)}
}

// reset empties the window; the log goes on at lsn.
func (w *window) reset(lsn wal.LSN) {
	w.dropTo(w.tail)
	w.dropLast()
	w.begin, w.tail = lsn, lsn
}

// capacity is how much can be placed at once, however the chunks lie.
func (w *window) capacity() int { return (w.chunksMax - 1) * w.pool.bytes }

// room is how much can be placed now.
func (w *window) room() int {
	n := (w.chunksMax - len(w.chunks)) * w.pool.bytes
	if len(w.chunks) > 0 {
		last := w.chunks[len(w.chunks)-1]
		n += cap(last.buf) - len(last.buf)
	} else {
		n -= int(w.tail % wal.LSN(w.pool.bytes)) // the first chunk begins below the tail
	}
	return n
}

// place copies data behind the tail. The caller has made sure that there is room.
func (w *window) place(data []byte) {
	for len(data) > 0 {
		var last *chunk
		if n := len(w.chunks); n > 0 {
			last = w.chunks[n-1]
		}
		if last == nil || len(last.buf) == cap(last.buf) {
			// Chunks begin at multiples of their size, so that a request that ends
			// with a chunk ends at a multiple of cutMultiple too.
			last = w.pool.get()
			last.begin = w.tail - w.tail%wal.LSN(w.pool.bytes)
			last.buf = last.buf[:w.tail-last.begin]
			w.chunks = append(w.chunks, last)
		}
		at := len(last.buf)
		n := copy(last.buf[at:cap(last.buf)], data)
		last.buf = last.buf[:at+n]
		w.tail += wal.LSN(n)
		data = data[n:]
	}
}

// at returns the bytes from lsn on, begin <= lsn < tail, up to the end of what
// is placed in their chunk, and the chunk.
func (w *window) at(lsn wal.LSN) (*chunk, []byte) {
	c := w.chunks[int(lsn-w.chunks[0].begin)/w.pool.bytes]
	return c, c.buf[lsn-c.begin:]
}

// dropTo gives up the chunks that lie wholly below lsn.
func (w *window) dropTo(lsn wal.LSN) {
	n := 0
	for n < len(w.chunks) && w.chunks[n].begin+wal.LSN(w.pool.bytes) <= lsn {
		n++
	}
	w.drop(n)
}

// dropLast gives up the last chunk too, if everything else is gone.
func (w *window) dropLast() {
	if len(w.chunks) == 1 {
		w.drop(1)
	}
}

// reclaim makes room for n bytes by giving up the oldest chunks, as far as they
// lie below committed. It reports whether there is room.
func (w *window) reclaim(n int, committed wal.LSN) bool {
	k := 0
	for room := w.room(); room < n; room += w.pool.bytes {
		if k == len(w.chunks) || w.chunks[k].begin+wal.LSN(w.pool.bytes) > committed {
			return false
		}
		k++
	}
	w.drop(k)
	return true
}

// drop gives up the first n chunks.
func (w *window) drop(n int) {
	if n == 0 {
		return
	}
	for _, c := range w.chunks[:n] {
		c.release()
	}
	kept := copy(w.chunks, w.chunks[n:])
	clear(w.chunks[kept:])
	w.chunks = w.chunks[:kept]
	w.begin = w.tail
	if kept > 0 {
		w.begin = w.chunks[0].begin
	}
}
