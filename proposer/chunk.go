package proposer

import (
	"sync/atomic"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// chunk is a piece of the window: a run of the log's bytes from begin on.
// Bytes once placed never change until nobody refers to the chunk.
type chunk struct {
	begin wal.LSN
	buf   []byte // its length is what is placed, its capacity the chunk's size
	pool  *chunkPool

	// refs counts the window and every frame whose data lies here.
	refs atomic.Int32
}

// release gives up one reference. The last one makes the memory free for reuse.
func (c *chunk) release() {
	if c.refs.Add(-1) == 0 {
		c.pool.put(c)
	}
}

// chunkPool keeps chunks that nobody refers to any more. It is safe for
// concurrent use. What does not come back, because gRPC never let go of it, is
// the garbage collector's.
type chunkPool struct {
	bytes int
	free  chan *chunk
}

func newChunkPool(bytes, keep int) *chunkPool {
	return &chunkPool{bytes: bytes, free: make(chan *chunk, keep)}
}

// get returns an empty chunk with one reference.
func (p *chunkPool) get() *chunk {
	var c *chunk
	select {
	case c = <-p.free:
		c.buf = c.buf[:0]
	default:
		c = &chunk{buf: make([]byte, 0, p.bytes), pool: p}
	}
	c.refs.Store(1)
	return c
}

func (p *chunkPool) put(c *chunk) {
	select {
	case p.free <- c:
	default:
	}
}

// drain gives idle memory back.
func (p *chunkPool) drain() {
	for {
		select {
		case <-p.free:
		default:
			return
		}
	}
}
