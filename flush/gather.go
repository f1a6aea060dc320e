package flush

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// gathering is how far the gathering of one batch has got.
type gathering struct {
	items   int   // taken from the queue
	heard   int   // of these, messages of proposers
	beats   int   // of these, heartbeats
	charge  int64 // what they were charged
	bytes   int   // WAL
	frames  int   // requests with WAL
	arrived int64 // when the oldest came
	event   *Event
	seal    bool // the batch ends this segment
	blocked bool // the next segment is not ready
	full    bool // nothing more joins this batch
}

// holding is memory that a batch uses: count messages in one block.
type holding struct {
	lane  *Lane
	block *block
	count int32
}

// Turn gathers what is waiting into one batch and performs it. It does not wait.
func (l *Loop) Turn() Outcome {
	l.batch.Reset()
	var g gathering
	for !g.full && l.gather(&g) {
	}
	if g.items > 0 || g.seal {
		l.perform(&g)
		return Done
	}
	if g.blocked {
		return Blocked
	}
	return Idle
}

// front is the oldest message that waits, nil if there is none.
func (l *Loop) front() *item {
	if l.next == len(l.taken) {
		clear(l.taken)
		l.taken = l.in.take(l.taken[:0])
		l.next = 0
		if len(l.taken) == 0 {
			return nil
		}
	}
	return &l.taken[l.next]
}

// gather takes the oldest message into the batch. It returns false if there is
// none or if it must wait for the next batch.
func (l *Loop) gather(g *gathering) bool {
	it := l.front()
	if it == nil {
		return false
	}
	joined := true
	switch it.kind {
	case itemAppend:
		joined = l.gatherAppend(it, g)
	case itemMessage:
		joined = l.gatherMessage(it, g)
	case itemEvent:
		joined = l.gatherEvent(it, g)
	case itemClose:
		l.forget(it.lane)
	}
	if !joined {
		return false
	}
	if g.items == 0 {
		g.arrived = it.arrived
	}
	g.items++
	g.charge += int64(it.charge)
	l.hold(it)
	l.next++
	return true
}

func (l *Loop) gatherAppend(it *item, g *gathering) bool {
	if it.lane.ended {
		return true
	}
	n := len(it.append.Data)
	if n > 0 && l.health == wal.Healthy {
		if g.frames > 0 && (g.bytes+n > l.config.BatchBytesMax || g.frames >= l.config.BatchRequestsMax) {
			return false
		}
		switch l.space(g, g.frames+1, g.bytes+n) {
		case SpaceOpen:
		case SpaceNone:
			l.refuse(it.lane, fmt.Sprintf("%d bytes at %v do not fit, and no further segment can be made; free some space and they will be taken", n, it.append.Begin))
			return true
		default:
			return false
		}
	}
	before := len(l.batch.Appends)
	if !l.acc.Step(it.lane.id, &it.append, &l.batch) {
		return false
	}
	g.heard++
	if n == 0 {
		g.beats++
	}
	if len(l.batch.Appends) > before {
		g.frames++
		g.bytes += n
	}
	return true
}

// gatherMessage takes a control message, which travels alone.
func (l *Loop) gatherMessage(it *item, g *gathering) bool {
	if it.lane.ended {
		return true
	}
	if !l.batch.Empty() {
		return false
	}
	l.meet(it.lane)
	if l.health == wal.Healthy && l.mayWrite(it.message) {
		switch l.space(g, 0, 0) {
		case SpaceOpen:
		case SpaceNone:
			l.refuse(it.lane, ErrNoSpace.Error())
			return true
		default:
			return false
		}
	}
	if !l.acc.Step(it.lane.id, it.message, &l.batch) {
		return false
	}
	g.heard++
	g.full = true
	return true
}

func (l *Loop) gatherEvent(it *item, g *gathering) bool {
	if g.items > 0 {
		return false
	}
	if it.event.Saves && l.health == wal.Healthy {
		switch l.space(g, 0, 0) {
		case SpaceOpen:
		case SpaceNone:
			it.event.done(ErrNoSpace)
			return true
		default:
			return false
		}
	}
	if it.event.Write != nil && l.health != wal.Healthy {
		it.event.done(ErrUnhealthy)
		return true
	}
	g.event = it.event
	g.full = true
	if it.event.Step != nil {
		it.event.Step(l.acc, &l.batch)
	}
	return true
}

// mayWrite reports whether a control message can ask for a state frame. A
// greeting hardly ever does, and is answered even when nothing can be written.
func (l *Loop) mayWrite(m consensus.Message) bool {
	g, ok := m.(*consensus.Greeting)
	return !ok || g.Membership.Generation > l.board.state.Load().Membership.Generation
}

// space asks the log, before the state machine sees a message, whether what it
// may ask for can be written.
func (l *Loop) space(g *gathering, frames, bytes int) Space {
	s := l.log.Space(frames, bytes)
	switch s {
	case SpaceNext:
		g.seal = true
	case SpaceWait:
		g.blocked = true
	}
	return s
}

// meet notes a lane whose first message has come.
func (l *Loop) meet(lane *Lane) {
	if !lane.known {
		lane.known = true
		l.lanes[lane.id] = lane
	}
}

// refuse ends a stream for want of space.
func (l *Loop) refuse(lane *Lane, detail string) {
	l.acc.Refuse(lane.id, consensus.ReasonNoSpace, detail, &l.batch)
}

// forget ends what a lane was to the machine; the rest of its queue is discarded.
func (l *Loop) forget(lane *Lane) {
	if lane.known && !lane.ended {
		l.acc.Close(lane.id)
	}
	lane.ended = true
	delete(l.lanes, lane.id)
}

// hold notes the memory of a message until the batch is performed.
func (l *Loop) hold(it *item) {
	if it.block == nil {
		return
	}
	if n := len(l.held); n > 0 && l.held[n-1].block == it.block {
		l.held[n-1].count++
		return
	}
	l.held = append(l.held, holding{it.lane, it.block, 1})
}

// release gives the memory of the batch back and lets receivers go on.
func (l *Loop) release(g *gathering) {
	for _, h := range l.held {
		if h.block.drop(h.count) == 1 && h.lane.fill.CompareAndSwap(h.block, nil) {
			// Nothing is left in it: it goes back to the pool, where a lane
			// that needs it finds it.
			h.block.drop(1)
		}
	}
	clear(l.held)
	l.held = l.held[:0]
	l.in.release(g.charge)
}
