package proposer

import (
	"context"
	"slices"
	"sync"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Wait returns nil when everything below lsn is committed. It may be called
// for a position that has not been placed yet. It returns ctx's error if that
// ends first; the bytes stay in the log and may be waited for again. If the
// proposer has stopped, bytes that were placed get an *OutcomeUnknownError and
// others the proposer's error.
func (p *Proposer) Wait(ctx context.Context, lsn wal.LSN) error {
	if p.committed(lsn) {
		return nil
	}
	w := waiterPool.Get().(*waiter)
	w.lsn = lsn
	if p.waiters.add(w, p.committed) {
		select {
		case <-w.ready:
		case <-ctx.Done():
			if p.waiters.remove(w) {
				waiterPool.Put(w)
				return ctx.Err()
			}
			<-w.ready
		}
	}
	waiterPool.Put(w)
	if p.committed(lsn) {
		return nil
	}
	err := p.Err()
	if lsn > p.Tail() {
		return err
	}
	return &OutcomeUnknownError{LSN: lsn, Commit: p.Commit(), Err: err}
}

func (p *Proposer) committed(lsn wal.LSN) bool { return p.Commit() >= lsn }

// Notify makes ch receive a token after every advance of the commit LSN and
// when the proposer stops, until cancel is called. A send never blocks: with a
// channel of capacity 1 none is missed, since what is read from Commit after a
// receive is at least what the token was sent for. Cancel may be called twice.
func (p *Proposer) Notify(ch chan<- struct{}) (cancel func()) {
	p.subs.add(ch)
	return func() { p.subs.remove(ch) }
}

// subscribers are the channels of Notify.
type subscribers struct {
	mu  sync.Mutex
	chs []chan<- struct{}
}

func (s *subscribers) add(ch chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chs = append(s.chs, ch)
}

func (s *subscribers) remove(ch chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chs = slices.DeleteFunc(s.chs, func(x chan<- struct{}) bool { return x == ch })
}

func (s *subscribers) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ch := range s.chs {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
