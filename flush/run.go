package flush

import (
	"context"

	"github.com/seed7f3f3bb8/holdfast/consensus"
)

// Start lets the loop work by itself: from now on a goroutine turns it while
// there is something to do, ends after the timeline was idle for a while, and
// comes back with the next message. Nobody else may call Turn.
func (l *Loop) Start() {
	l.in.mu.Lock()
	l.in.launch = func() { go l.run() }
	if len(l.in.queue) == 0 {
		l.in.mu.Unlock()
		return
	}
	l.in.rouse()
}

// run turns the loop until it may rest or has been stopped.
func (l *Loop) run() {
	l.resting.Store(false)
	if j := l.config.Janitor; j != nil {
		j.watch(l)
	}
	for {
		next := goOn
		switch l.Turn() {
		case Idle:
			next = l.in.await(l.resting.Load, l.slim)
		case Blocked:
			if l.config.Blocked != nil {
				l.config.Blocked()
			}
			next = l.in.awaitPrepared(l.slim)
		}
		switch next {
		case leave:
			l.leave()
			return
		case rest:
			return
		}
	}
}

// slim gives back what a busy time has left and takes leave of the janitor.
func (l *Loop) slim() {
	if l.next == len(l.taken) {
		l.taken, l.next = nil, 0
	}
	l.batch, l.held = consensus.Batch{}, nil
	if j := l.config.Janitor; j != nil {
		j.unwatch(l)
	}
}

// Prepared tells the loop that the log may have room again: a segment was
// prepared, or it is now known that none can be. It never waits.
func (l *Loop) Prepared() { l.in.nudge(true) }

// Stop ends the loop: what was received is performed, a last state frame
// proves it, and every stream ends with err. It waits for that until the
// context ends, and may be called again. It is for loops that were started.
func (l *Loop) Stop(ctx context.Context, err *consensus.Error) error {
	l.farewell.CompareAndSwap(nil, err)
	last := Quiet(nil)
	l.in.shut(&last)
	select {
	case <-l.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stopped is closed when the loop has ended for good: no method of the log is
// called any more.
func (l *Loop) Stopped() <-chan struct{} { return l.stopped }

// leave ends every stream, discards what is still queued and says that the
// loop is gone.
func (l *Loop) leave() {
	for it := l.front(); it != nil; it = l.front() {
		if it.kind == itemEvent {
			it.event.done(ErrClosed)
		}
		l.hold(it)
		l.release(&gathering{charge: int64(it.charge)})
		l.next++
	}
	for _, lane := range l.in.strand() {
		if !lane.ended {
			lane.ended = true
			lane.stream.End(l.farewell.Load())
		}
	}
	clear(l.lanes)
	close(l.stopped)
}
