package flush

import (
	"errors"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// perform carries out the batch in the order that package consensus demands:
// write, one sync, Flushed, replies, ends.
func (l *Loop) perform(g *gathering) {
	b := &l.batch
	l.observe = Turn{Requests: g.items, Heard: g.heard, Heartbeats: g.beats, Saved: b.Save, Appends: len(b.Appends), Bytes: g.bytes, Refused: l.observe.Refused[:0]}
	t := &l.observe
	start := l.config.Clock()
	if g.items > 0 {
		t.QueueNanos = start - g.arrived
	}
	if b.Save != nil {
		t.Cut = l.acc.Status().Write - b.SaveEnd
	}
	err := l.write(g, start)
	if err == nil {
		l.acc.Flushed(b)
		err = inOrder(l.acc.Status())
	}
	if err != nil {
		t.Err, t.Saved, t.Cut = err, nil, 0
		l.acc.Fail(b)
	}
	l.release(g)
	if err != nil && l.config.Failed != nil {
		l.config.Failed(err) // first, so that whoever sees the health finds the reason
	}

	status := l.acc.Status()
	l.health = status.Health
	l.board.publish(status, l.acc.StoredLastTerm(), t.Saved)
	if g.heard > 0 {
		l.turns.Add(1)
		if t.Appends > 0 {
			l.writes.Add(1)
		}
	}
	l.answer()
	l.board.wake()
	if g.event != nil {
		g.event.done(err)
	}
	if l.config.Observe != nil {
		l.config.Observe(t)
	}
}

// write hands the batch to the file and makes it durable. The first error is
// final: whatever it was, nothing of the batch can be relied on.
func (l *Loop) write(g *gathering, start int64) error {
	b, t := &l.batch, &l.observe
	sealedBefore := l.sealed
	l.sealed = false
	var err error
	switch {
	case b.Save != nil && len(b.Appends) > 0:
		return errors.New("a batch asks for a state frame and for data")
	case g.event != nil && g.event.Write != nil:
		st := l.acc.State()
		t.Wrote = true
		return g.event.Write(&st)
	case b.Save != nil:
		err = l.log.SaveState(b.Save, b.SaveEnd)
	case len(b.Appends) > 0:
		err = l.log.Append(b.Term, b.Commit, b.Appends, g.seal)
	case g.seal && sealedBefore:
		return errors.New("the log asks for a seal twice without a write between")
	case g.seal:
		l.sealed = true
		err = l.log.Seal()
	default:
		return nil
	}
	t.Wrote = true
	written := l.config.Clock()
	t.WriteNanos = written - start
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	err = l.log.Sync()
	t.SyncNanos = l.config.Clock() - written
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// inOrder checks the first rule of the house.
func inOrder(s consensus.Status) error {
	if s.Horizon > s.Commit || s.Commit > s.Flush || s.Flush > s.Write {
		return fmt.Errorf("positions are out of order: horizon %v, commit %v, flush %v, write %v", s.Horizon, s.Commit, s.Flush, s.Write)
	}
	return nil
}

// answer sends the replies and ends the streams that are to end.
func (l *Loop) answer() {
	t := &l.observe
	for _, r := range l.batch.Replies {
		lane := l.lanes[r.Stream]
		if lane == nil {
			continue
		}
		if a, ok := r.Message.(*consensus.AppendResponse); ok {
			a.Stages = consensus.Stages{QueueNanos: nanos(t.QueueNanos), WriteNanos: nanos(t.WriteNanos), SyncNanos: nanos(t.SyncNanos)}
		}
		if l.send(lane, r.Message) != nil {
			l.forget(lane)
			lane.stream.Cancel()
		}
	}
	for _, e := range l.batch.Ends {
		t.Refused = append(t.Refused, e.Err.Reason)
		if lane := l.lanes[e.Stream]; lane != nil {
			lane.ended = true
			delete(l.lanes, e.Stream)
			lane.stream.End(e.Err)
		}
	}
}

// send lets the janitor see how long a message takes to be accepted.
func (l *Loop) send(lane *Lane, m consensus.Message) error {
	l.sendsTo.Store(lane)
	l.sending.Add(1)
	err := lane.stream.Send(m)
	l.sending.Add(1)
	return err
}

// nanos guards against a clock that went back.
func nanos(n int64) uint64 { return uint64(max(n, 0)) }

// Health is that of the machine after the last turn.
func (l *Loop) Health() wal.Health { return l.board.read().Health }
