package acceptor

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// registry knows the timelines of a node, cold ones included.
type registry struct {
	mu        sync.RWMutex
	timelines map[wal.TimelineID]*timeline

	// Creating and deleting one name is serial; names share a few locks.
	changes [64]sync.Mutex
	seed    maphash.Seed
}

func newRegistry() *registry {
	return &registry{timelines: map[wal.TimelineID]*timeline{}, seed: maphash.MakeSeed()}
}

// get returns a timeline, nil if there is none.
func (r *registry) get(id wal.TimelineID) *timeline {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.timelines[id]
}

func (r *registry) put(t *timeline) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timelines[t.id] = t
}

func (r *registry) remove(t *timeline) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timelines[t.id] == t {
		delete(r.timelines, t.id)
	}
}

// changing locks a name against being created or deleted by anyone else.
func (r *registry) changing(id wal.TimelineID) *sync.Mutex {
	return &r.changes[maphash.Comparable(r.seed, id)%uint64(len(r.changes))]
}

// all returns every timeline, in no order.
func (r *registry) all() []*timeline {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]*timeline, 0, len(r.timelines))
	for _, t := range r.timelines {
		out = append(out, t)
	}
	return out
}

func (r *registry) len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.timelines)
}

// page returns up to n timelines behind the name after, ordered by name, and
// whether there are more. An empty tenant means all of them.
func (r *registry) page(tenant, after string, n int) (page []*timeline, more bool) {
	all := r.all()
	all = slices.DeleteFunc(all, func(t *timeline) bool {
		return tenant != "" && t.id.Tenant != tenant || t.name <= after
	})
	slices.SortFunc(all, func(a, b *timeline) int { return strings.Compare(a.name, b.name) })
	if len(all) > n {
		return all[:n], true
	}
	return all, false
}
