package flush

import (
	"context"
	"sync/atomic"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Limits of a batch. A batch grows while the one before it is being synced, so
// it needs no lower bound; the upper one keeps a single fdatasync short enough
// for acknowledgements to flow.
const (
	BatchBytesMax    = 4 << 20
	batchRequestsMax = 4096
)

// Config makes a Loop. Acceptor, Log, Pool and Clock must be set.
type Config struct {
	Acceptor *consensus.Acceptor
	Log      Log
	Pool     *Pool

	// InboxBytes bounds what may wait, with a charge for each message.
	InboxBytes int
	// BatchBytesMax bounds the WAL of one batch; 0 is BatchBytesMax.
	BatchBytesMax int
	// BatchRequestsMax bounds the requests with data of one batch; 0 leaves it
	// to the bytes. 1 is one flush per request, for comparison.
	BatchRequestsMax int

	// Clock returns monotonic nanoseconds. Only durations are taken from it,
	// and no decision.
	Clock func() int64

	// Observe, if set, is told of every performed batch, on the loop's
	// goroutine. It must not wait, and t is valid only during the call.
	Observe func(t *Turn)

	// Waited, if set, is told how long a receiver waited for room, in
	// nanoseconds; only of waits that happened.
	Waited func(nanos int64)

	// Failed, if set, is told once, on the loop's goroutine, that the log was
	// poisoned and why. It must not wait.
	Failed func(error)

	// Blocked, if set, is told on the goroutine that turns that a message waits
	// for the log's next segment. It must see to it that Prepared is called, and must not wait.
	Blocked func()

	// Janitor, if set, watches over the loop while Run works.
	Janitor *Janitor
}

// Loop drains one timeline. Turn belongs to one goroutine, the caller's or,
// after Start, the loop's own; all other methods may be called by anyone.
type Loop struct {
	config Config
	acc    *consensus.Acceptor
	log    Log
	in     inbox
	board  board

	// Of the goroutine that turns.
	taken   []item // from the inbox; items before next are done
	next    int
	lanes   map[consensus.StreamID]*Lane // those that were heard of and have not ended
	batch   consensus.Batch
	held    []holding  // memory of the batch
	health  wal.Health // of the machine, after the last turn
	sealed  bool       // the last turn did nothing but seal a segment
	observe Turn

	// For the janitor.
	turns   atomic.Uint64        // batches with a proposer's message
	writes  atomic.Uint64        // batches with data
	sending atomic.Uint64        // odd while a Send is under way
	sendsTo atomic.Pointer[Lane] // whom that Send is for
	resting atomic.Bool          // the goroutine may end when nothing waits
	patrol  patrol

	farewell atomic.Pointer[consensus.Error] // what Stop tells the streams
	stopped  chan struct{}                   // closed when the loop has ended for good
}

// NewLoop makes a loop that waits for its first turn.
func NewLoop(c Config) *Loop {
	if c.BatchBytesMax <= 0 {
		c.BatchBytesMax = BatchBytesMax
	}
	if c.BatchRequestsMax <= 0 {
		c.BatchRequestsMax = batchRequestsMax
	}
	l := &Loop{config: c, acc: c.Acceptor, log: c.Log, lanes: map[consensus.StreamID]*Lane{}, stopped: make(chan struct{})}
	l.in.init(&l.config)
	l.health = l.acc.Status().Health
	st := l.acc.State()
	l.board.publish(l.acc.Status(), l.acc.StoredLastTerm(), &st)
	return l
}

// Open begins a stream. It returns nil if the loop has ended.
func (l *Loop) Open(s Stream) *Lane { return l.in.open(s) }

// Post queues an event. It never waits. It reports false, and e.Done is not
// called, if the loop has ended.
func (l *Loop) Post(e Event) bool {
	return l.in.put(itemEvent, func(it *item) { it.event = &e })
}

// Positions are those after the last turn.
func (l *Loop) Positions() Positions { return l.board.read() }

// Wait returns the positions as soon as enough says that they will do, with
// the context's error if that ends before, or with ErrClosed if the loop does.
// enough is called by the caller's goroutine.
func (l *Loop) Wait(ctx context.Context, enough func(Positions) bool) (Positions, error) {
	return l.board.wait(ctx, l.stopped, enough)
}

// State is the durable state as it was last saved. It must not be written to.
func (l *Loop) State() *wal.State { return l.board.state.Load() }

// InboxBytes is what waits to be performed, each message with a small charge.
func (l *Loop) InboxBytes() int { return int(l.in.bytes.Load()) }

// Streams is how many streams are open.
func (l *Loop) Streams() int {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	return len(l.in.lanes)
}
