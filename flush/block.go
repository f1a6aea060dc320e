package flush

import "sync/atomic"

// block is a piece of inbox memory. One lane fills it from the front; the loop
// lets go of what it has performed. It returns to its pool when no one refers
// to it any more, which is soon: a block is held only while messages lie in it.
type block struct {
	buf   []byte
	class int
	pool  *Pool
	// refs counts the lane that fills it and every message whose data lies in it.
	refs atomic.Int32
	// used is how much of buf was given out. Whoever holds the fill reference owns it.
	used int
}

func (b *block) room() int { return len(b.buf) - b.used }

// drop gives up n references and reports how many are left.
func (b *block) drop(n int32) int32 {
	left := b.refs.Add(-n)
	if left == 0 {
		b.pool.put(b)
	}
	return left
}

// Block sizes: 4 KiB to 1 MiB in steps of four. The largest holds two of the
// largest requests, so at most half of a block is lost to what did not fit.
const (
	classes       = 5
	classBytesMin = 4 << 10
	classBytesMax = classBytesMin << (2 * (classes - 1))
)

func classBytes(class int) int { return classBytesMin << (2 * class) }

// classOf is the smallest class that holds n bytes; n is at most classBytesMax.
func classOf(n int) int {
	class := 0
	for classBytes(class) < n {
		class++
	}
	return class
}
