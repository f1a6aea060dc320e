package proposer

import (
	"sync"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// waiter is one goroutine that waits for a position. Waiters are reused.
type waiter struct {
	lsn   wal.LSN
	at    int           // index in the heap, -1 if it is not there
	ready chan struct{} // takes one token when the waiter has been taken out
}

var waiterPool = sync.Pool{New: func() any { return &waiter{ready: make(chan struct{}, 1)} }}

// waiters is a heap of those who wait, the lowest LSN on top, so that an
// advance touches only those whom it concerns.
type waiters struct {
	mu   sync.Mutex
	heap []*waiter
	over bool // the proposer has stopped: nobody waits any more
}

// add enters w, unless reached says, under the lock, that there is nothing to
// wait for. An advance is published before it takes the lock, so none is missed.
func (q *waiters) add(w *waiter, reached func(wal.LSN) bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || reached(w.lsn) {
		return false
	}
	w.at = len(q.heap)
	q.heap = append(q.heap, w)
	q.up(w.at)
	return true
}

// remove takes w out and reports whether it was still in. If not, a token is on its way.
func (q *waiters) remove(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.at < 0 {
		return false
	}
	q.take(w.at)
	return true
}

// wake lets everyone go who waits for lsn or less, in the order of their LSNs.
// It uses and returns scratch, so that nobody is woken under the lock.
func (q *waiters) wake(lsn wal.LSN, scratch []*waiter) []*waiter {
	scratch = scratch[:0]
	q.mu.Lock()
	for len(q.heap) > 0 && q.heap[0].lsn <= lsn {
		scratch = append(scratch, q.take(0))
	}
	q.mu.Unlock()
	for i, w := range scratch {
		scratch[i] = nil
		w.ready <- struct{}{}
	}
	return scratch
}

// stop lets everyone go, and everyone who comes later.
func (q *waiters) stop() {
	q.mu.Lock()
	q.over = true
	q.mu.Unlock()
	q.wake(^wal.LSN(0), nil)
}

// take removes the waiter at i.
func (q *waiters) take(i int) *waiter {
	w, last := q.heap[i], len(q.heap)-1
	q.swap(i, last)
	q.heap[last] = nil
	q.heap = q.heap[:last]
	if i < last {
		q.down(i)
		q.up(i)
	}
	w.at = -1
	return w
}

func (q *waiters) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if q.heap[parent].lsn <= q.heap[i].lsn {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

func (q *waiters) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.heap); child++ {
			if q.heap[child].lsn < q.heap[least].lsn {
				least = child
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}

func (q *waiters) swap(i, j int) {
	q.heap[i], q.heap[j] = q.heap[j], q.heap[i]
	q.heap[i].at, q.heap[j].at = i, j
}
