package flush

import (
	"context"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// The janitor's pace, in its ticks of one second.
const (
	janitorTick    = time.Second
	stuckTicksMax  = 5  // a client that does not read for so long is cut off
	restTicksAfter = 30 // a loop that heard nothing for so long ends its goroutine
)

// Janitor is the one slow clock of a node. Once a second it looks at every
// loop that works: it cuts off a stream that makes the loop wait, posts Quiet
// to a log that has fallen quiet, lets an idle loop rest, and gives unused
// memory of the pool back. So no batch ever needs a timer.
type Janitor struct {
	pool *Pool

	mu    sync.Mutex
	loops []*Loop
	round []*Loop // reused by Tick
}

// patrol is what the janitor remembers of a loop.
type patrol struct {
	place int // in Janitor.loops; guarded by Janitor.mu

	// Of the janitor's goroutine only.
	sending uint64
	stuck   int
	turns   uint64
	idle    int
	writes  uint64
	saved   marks // what the last Quiet was posted for
}

// marks is what a state frame would save.
type marks struct {
	writes          uint64
	commit, horizon wal.LSN
}

// NewJanitor makes a janitor for loops that share pool.
func NewJanitor(pool *Pool) *Janitor { return &Janitor{pool: pool} }

// Run ticks until the context ends.
func (j *Janitor) Run(ctx context.Context) {
	t := time.NewTicker(janitorTick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			j.Tick()
		case <-ctx.Done():
			return
		}
	}
}

// Tick is one second. It is called by one goroutine.
func (j *Janitor) Tick() {
	j.mu.Lock()
	j.round = append(j.round[:0], j.loops...)
	j.mu.Unlock()
	for _, l := range j.round {
		l.inspect()
	}
	clear(j.round)
	j.pool.Trim()
}

// Working is how many loops have a goroutine now.
func (j *Janitor) Working() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.loops)
}

func (j *Janitor) watch(l *Loop) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l.patrol.place = len(j.loops)
	j.loops = append(j.loops, l)
}

func (j *Janitor) unwatch(l *Loop) {
	j.mu.Lock()
	defer j.mu.Unlock()
	last := len(j.loops) - 1
	j.loops[l.patrol.place] = j.loops[last]
	j.loops[l.patrol.place].patrol.place = l.patrol.place
	j.loops[last] = nil
	j.loops = j.loops[:last]
}

// inspect is the janitor's look at one loop.
func (l *Loop) inspect() {
	p := &l.patrol
	if s := l.sending.Load(); s&1 == 0 || s != p.sending {
		p.sending, p.stuck = s, 0
	} else if p.stuck++; p.stuck >= stuckTicksMax {
		if lane := l.sendsTo.Load(); lane != nil && l.sending.Load() == s {
			lane.stream.Cancel()
		}
	}

	pos := l.board.read()
	now := marks{l.writes.Load(), pos.Commit, pos.Horizon}
	if now.writes == p.writes && now != p.saved {
		p.saved = now
		l.Post(Quiet(nil))
	}
	p.writes = now.writes

	if n := l.turns.Load(); n != p.turns {
		p.turns, p.idle = n, 0
	} else if p.idle++; p.idle >= restTicksAfter {
		p.idle = 0
		l.resting.Store(true)
		l.in.nudge(false)
	}
}
