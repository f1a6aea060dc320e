package flush

import "sync"

// Pool is the memory of all inboxes of a node, bounded by one cap. Blocks that
// nobody uses are kept for the next taker until Trim finds them idle. It is safe
// for concurrent use.
type Pool struct {
	mu sync.Mutex
	// held is what was allocated, used and free, in bytes; held <= max.
	held, max int
	free      [classes][]*block
	idle      [classes]int // fewest free blocks since the last Trim
	waiting   []*poolWaiter
}

// poolWaiter is a lane that waits for a block; its turn comes in order.
type poolWaiter struct {
	class int
	ready chan *block // one place, so that the giver never waits
}

// NewPool makes a pool that never holds more than bytesMax bytes, nor less
// than one block of the largest size: a node that could not take a single
// request would be no use.
func NewPool(bytesMax int) *Pool { return &Pool{max: max(bytesMax, classBytesMax)} }

// Bytes is how much memory the pool holds now, used or kept for reuse.
func (p *Pool) Bytes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// get takes a block of a class. It waits while the node is at its cap, until
// done is closed; then it returns nil.
func (p *Pool) get(class int, done <-chan struct{}) *block {
	p.mu.Lock()
	if len(p.waiting) == 0 {
		if b := p.take(class); b != nil {
			p.mu.Unlock()
			return b
		}
	}
	w := &poolWaiter{class: class, ready: make(chan *block, 1)}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case b := <-w.ready:
		return b
	case <-done:
	}
	p.mu.Lock()
	for i := range p.waiting {
		if p.waiting[i] == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	// It may have been served in the meantime.
	select {
	case b := <-w.ready:
		b.drop(1)
	default:
	}
	return nil
}

// take returns a block with one reference, nil at the cap.
func (p *Pool) take(class int) *block {
	if n := len(p.free[class]); n > 0 {
		b := p.free[class][n-1]
		p.free[class][n-1] = nil
		p.free[class] = p.free[class][:n-1]
		p.idle[class] = min(p.idle[class], n-1)
		b.refs.Store(1)
		b.used = 0
		return b
	}
	size := classBytes(class)
	for other := 0; other < classes && p.held+size > p.max; other++ {
		p.discard(other, (p.held+size-p.max+classBytes(other)-1)/classBytes(other))
	}
	if p.held+size > p.max {
		return nil
	}
	p.held += size
	b := &block{buf: make([]byte, size), class: class, pool: p}
	b.refs.Store(1)
	return b
}

// put takes a block back that nobody refers to.
func (p *Pool) put(b *block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free[b.class] = append(p.free[b.class], b)
	for len(p.waiting) > 0 {
		next := p.take(p.waiting[0].class)
		if next == nil {
			return
		}
		p.waiting[0].ready <- next
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
	}
}

// Trim gives half of the blocks that were not needed since the last Trim, at
// least one, back to the garbage collector. The janitor calls it once a second.
func (p *Pool) Trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := range p.free {
		p.discard(class, (p.idle[class]+1)/2)
		p.idle[class] = len(p.free[class])
	}
}

// discard forgets up to n free blocks of a class.
func (p *Pool) discard(class, n int) {
	keep := max(len(p.free[class])-n, 0)
	p.held -= (len(p.free[class]) - keep) * classBytes(class)
	clear(p.free[class][keep:])
	p.free[class] = p.free[class][:keep]
	if keep == 0 {
		p.free[class] = nil
	}
	p.idle[class] = min(p.idle[class], keep)
}
