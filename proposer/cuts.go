package proposer

import "github.com/seed7f3f3bb8/holdfast/wal"

// Bounds of what is kept of the shared cuts for streams that are behind. One
// that falls out cuts for itself, in larger pieces.
const (
	cutsMax      = 256
	cutsBytesMax = 8 << 20
)

// cuts are the newest frames, in the order of their LSNs without a gap. Streams
// that stand at a boundary of theirs send them as they are. Cuts are numbered
// from 0 on. Guarded by the proposer's mutex.
type cuts struct {
	ring  [cutsMax]*frame
	first uint64  // number of the oldest one kept
	next  uint64  // number of the next one to be made
	bytes int     // of data in those kept
	end   wal.LSN // where the next one begins
}

// reset forgets all; the next cut begins at lsn.
func (c *cuts) reset(lsn wal.LSN) {
	for c.first < c.next {
		c.dropFirst()
	}
	c.end = lsn
}

// get returns cut number i, nil if it is not kept.
func (c *cuts) get(i uint64) *frame {
	if i < c.first || i >= c.next {
		return nil
	}
	return c.ring[i%cutsMax]
}

// add takes over the caller's reference to f, which begins at c.end.
func (c *cuts) add(f *frame) {
	for c.first < c.next && (c.next-c.first == cutsMax || c.bytes >= cutsBytesMax) {
		c.dropFirst()
	}
	c.ring[c.next%cutsMax] = f
	c.next++
	c.bytes += len(f.request.Data)
	c.end = f.end()
}

func (c *cuts) dropFirst() {
	f := c.ring[c.first%cutsMax]
	c.ring[c.first%cutsMax] = nil
	c.first++
	c.bytes -= len(f.request.Data)
	f.release()
}

// locate returns the number of the first cut that ends above lsn, and c.next if
// there is none.
func (c *cuts) locate(lsn wal.LSN) uint64 {
	low, high := c.first, c.next
	for low < high {
		middle := (low + high) / 2
		if c.get(middle).end() > lsn {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// boundary is the first place above lsn where a shared cut begins or ends.
func (c *cuts) boundary(lsn wal.LSN) wal.LSN {
	f := c.get(c.locate(lsn))
	switch {
	case f == nil:
		return c.end
	case f.begin() > lsn:
		return f.begin()
	}
	return f.end()
}
