package acceptor

import (
	"cmp"
	"slices"
	"sync"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
)

// hotSet bounds the logs that have descriptors open for writing. A log that
// writes enters by itself; the keeper takes the descriptors of those that have
// not written for longest, or not for a while, and the next write takes them again.
type hotSet struct {
	max int

	mu  sync.Mutex
	set map[*replica]struct{}
}

// enter notes that r has descriptors. It is called for every batch that writes.
func (h *hotSet) enter(r *replica) {
	if r.hot.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.set == nil {
		h.set = map[*replica]struct{}{}
	}
	r.hot.Store(true)
	h.set[r] = struct{}{}
}

func (h *hotSet) leave(r *replica) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.hot.Store(false)
	delete(h.set, r)
}

func (h *hotSet) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.set)
}

// full reports whether there are as many as may be.
func (h *hotSet) full() bool { return h.len() >= h.max }

// cool takes the descriptors of every log that has not written since before,
// and of those that have not written for longest while there are more than three
// quarters of what may be.
func (h *hotSet) cool(before int64) {
	h.mu.Lock()
	list := make([]*replica, 0, len(h.set))
	for r := range h.set {
		list = append(list, r)
	}
	h.mu.Unlock()
	wrote := make(map[*replica]int64, len(list)) // it changes meanwhile
	for _, r := range list {
		wrote[r] = r.wrote.Load()
	}
	slices.SortFunc(list, func(a, b *replica) int { return cmp.Compare(wrote[a], wrote[b]) })
	surplus := len(list) - h.max*3/4
	for i, r := range list {
		if i >= surplus && wrote[r] >= before {
			return
		}
		if !r.cooling.CompareAndSwap(false, true) {
			continue
		}
		r.loop.Post(flush.Event{Step: func(*consensus.Acceptor, *consensus.Batch) {
			r.cooling.Store(false)
			h.leave(r)
			r.log.Idle()
		}})
	}
}
