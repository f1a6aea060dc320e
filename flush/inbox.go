package flush

import (
	"sync"
	"sync/atomic"

	"github.com/seed7f3f3bb8/holdfast/consensus"
)

// itemBytes is what a message is charged besides its data: its place in the
// queue. So the limit holds for a flood of heartbeats, too.
const itemBytes = 128

// item is one place of the queue: an append (the only kind that is frequent),
// another message, the end of a lane, or an event of the node itself.
type item struct {
	kind    itemKind
	lane    *Lane // nil for an event
	block   *block
	charge  int
	arrived int64 // clock, nanoseconds
	append  consensus.AppendRequest
	message consensus.Message
	event   *Event
}

type itemKind uint8

const (
	itemAppend itemKind = iota
	itemMessage
	itemClose
	itemEvent
)

// inbox is the queue before a loop: many lanes put, one loop takes all at
// once. A hand-off costs one lock, and a wake-up only if the loop sleeps.
type inbox struct {
	pool   *Pool
	limit  int64
	clock  func() int64
	waited func(int64)

	// bytes is what waits here and what the loop has not performed yet, each
	// message with its itemBytes. It stays at or below limit, except that one
	// message always fits into an empty inbox.
	bytes   atomic.Int64
	blocked atomic.Int32 // lanes that wait for room

	mu       sync.Mutex
	room     sync.Cond // bytes fell, or a lane was interrupted
	work     sync.Cond // the queue is no longer empty
	queue    []item
	lanes    []*Lane // open ones, in the order in which they were opened
	drawn    consensus.StreamID
	asleep   bool   // the loop waits for work
	running  bool   // a goroutine runs the loop
	closed   bool   // nothing more is queued
	prepared bool   // a segment was prepared since the loop last waited for one
	launch   func() // starts that goroutine; nil where the caller turns the loop
}

func (in *inbox) init(c *Config) {
	in.pool, in.limit, in.clock, in.waited = c.Pool, int64(c.InboxBytes), c.Clock, c.Waited
	in.room.L, in.work.L = &in.mu, &in.mu
}

// put queues what fill writes. It reports false if the inbox is closed.
func (in *inbox) put(kind itemKind, fill func(*item)) bool {
	now := in.clock()
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		return false
	}
	in.queue = append(in.queue, item{kind: kind, arrived: now})
	fill(&in.queue[len(in.queue)-1])
	in.rouse()
	return true
}

// rouse releases mu and sees to it that someone empties the queue.
func (in *inbox) rouse() {
	wake, launch := in.asleep, !in.running && in.launch != nil
	in.asleep = false
	if launch {
		in.running = true
	}
	in.mu.Unlock()
	if wake {
		in.work.Signal()
	}
	if launch {
		in.launch()
	}
}

// take returns all that waits and leaves spare, an empty slice, in its place.
func (in *inbox) take(spare []item) []item {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.queue) == 0 {
		return spare
	}
	q := in.queue
	in.queue = spare
	return q
}

// verdict is what a loop's goroutine is to do when it has waited.
type verdict uint8

const (
	goOn  verdict = iota
	rest          // end; another goroutine may have begun already
	leave         // end for good; none will begin
)

// await waits until something is queued, mayRest allows the goroutine to end,
// or the inbox is closed. It calls slim before another one can be launched.
func (in *inbox) await(mayRest func() bool, slim func()) verdict {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.queue) == 0 {
		if in.closed || mayRest() {
			return in.quit(slim)
		}
		in.asleep = true
		in.work.Wait()
	}
	in.asleep = false
	return goOn
}

// awaitPrepared waits for nudge(true) or until the inbox is closed.
func (in *inbox) awaitPrepared(slim func()) verdict {
	in.mu.Lock()
	defer in.mu.Unlock()
	for !in.prepared {
		if in.closed {
			return in.quit(slim)
		}
		in.work.Wait()
	}
	in.prepared = false
	return goOn
}

func (in *inbox) quit(slim func()) verdict {
	in.running, in.asleep = false, false
	slim()
	if in.closed {
		return leave
	}
	in.queue = nil
	return rest
}

// nudge makes the loop look again.
func (in *inbox) nudge(prepared bool) {
	in.mu.Lock()
	in.prepared = in.prepared || prepared
	in.mu.Unlock()
	in.work.Signal()
}

// admit charges n bytes, waiting while they do not fit. It reports false when
// the lane was interrupted.
func (in *inbox) admit(l *Lane, n int64) bool {
	if now := in.bytes.Add(n); now <= in.limit || now == n {
		return true
	}
	in.bytes.Add(-n)
	if in.waited != nil {
		since := in.clock()
		defer func() { in.waited(in.clock() - since) }()
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.blocked.Add(1)
	defer in.blocked.Add(-1)
	for !l.interrupted && !in.closed {
		if now := in.bytes.Add(n); now <= in.limit || now == n {
			return true
		}
		if in.bytes.Add(-n) > 0 {
			in.room.Wait()
		}
	}
	return false
}

// release gives back n bytes.
func (in *inbox) release(n int64) {
	in.bytes.Add(-n)
	if in.blocked.Load() > 0 {
		in.mu.Lock()
		in.room.Broadcast()
		in.mu.Unlock()
	}
}

// open adds a lane.
func (in *inbox) open(s Stream) *Lane {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil
	}
	in.drawn++
	l := &Lane{inbox: in, id: in.drawn, stream: s, done: make(chan struct{})}
	in.lanes = append(in.lanes, l)
	return l
}

// forget removes a lane that was closed.
func (in *inbox) forget(l *Lane) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.lanes {
		if in.lanes[i] == l {
			in.lanes = append(in.lanes[:i], in.lanes[i+1:]...)
			return
		}
	}
}

// shut closes the inbox behind one last event.
func (in *inbox) shut(last *Event) {
	in.mu.Lock()
	if in.closed {
		in.mu.Unlock()
		return
	}
	in.closed = true
	in.queue = append(in.queue, item{kind: itemEvent, event: last, arrived: in.clock()})
	in.room.Broadcast()
	in.asleep = true // whatever the loop waits for, it is to look again
	in.rouse()
}

// strand returns the lanes that are still open and forgets them.
func (in *inbox) strand() []*Lane {
	in.mu.Lock()
	defer in.mu.Unlock()
	lanes := in.lanes
	in.lanes = nil
	return lanes
}
