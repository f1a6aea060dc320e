package proposer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
)

// Proposer is the single writer of a timeline. All methods may be called by
// many goroutines at once.
type Proposer struct {
	config      Config
	creation    wal.CreationID
	membership  wal.Membership
	connections *Connections
	logger      *zap.Logger

	// life ends when the proposer stops; every goroutine watches it.
	life  context.Context
	end   context.CancelFunc
	tasks sync.WaitGroup
	ready chan struct{} // closed when the term's start is committed for the first time
	done  chan struct{} // closed when the proposer has stopped
	pacer *pacer

	waiters waiters
	subs    subscribers

	// commit and tail are copies of what mu guards, for readers without the lock.
	// commit is stored before waiters are looked at.
	commit atomic.Uint64
	tail   atomic.Uint64

	// turn is held by the appender that waits for room, and by one with much data.
	// room takes a token when something left the window and room is wanted.
	turn chan struct{}
	room chan struct{}

	// mu guards everything below, the core and what connections say is guarded by it.
	mu      sync.Mutex
	core    *consensus.Proposer
	state   consensus.ProposerStatus // of the core, after its last event
	members []*member                // ascending by node id; the slice never changes
	window  window
	cuts    cuts
	err     error // set once stopped

	handed   bool     // LSNs were given out; tail and window are this instance's for good
	wonTerm  wal.Term // the term that window and cuts were made ready for
	advanced bool     // commit has risen and nobody has been told yet
	turns    int      // appenders that hold or want the turn; others queue behind them
	starved  bool     // the holder of the turn waits for room

	ends  ends // with NoCoalesce: where appends end that are not cut yet
	meter meter

	announce      *time.Timer // tells idle acceptors of a new commit LSN
	announceArmed bool
	decision      context.CancelFunc // ends the question that Decide is asked
	decided       chan struct{}      // closed when Decide has returned; nil before the first question
	clockKick     chan struct{}
}

// inFlightMax bounds the requests that are unacknowledged on a stream. From 16
// on it costs nothing; beyond it requests grow instead.
const inFlightMax = 64

func (p *Proposer) member(n wal.NodeID) *member {
	for _, m := range p.members {
		if m.node == n {
			return m
		}
	}
	return nil
}

// Commit returns the commit LSN: everything below is flushed by a majority and
// will never be lost. It never goes back.
func (p *Proposer) Commit() wal.LSN { return wal.LSN(p.commit.Load()) }

// Tail returns the end of the log as this proposer has placed it: where the
// next Append begins.
func (p *Proposer) Tail() wal.LSN { return wal.LSN(p.tail.Load()) }

// Done is closed when the proposer has stopped, for whatever reason; see Err.
func (p *Proposer) Done() <-chan struct{} { return p.done }

// Err returns why the proposer stopped: ErrClosed, a *FencedError, a
// *RefusedError, or what Decide returned. It is nil while the proposer runs.
func (p *Proposer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// closeTimeout bounds how long Close tries to tell the acceptors the last commit LSN.
const closeTimeout = 500 * time.Millisecond

// Close stops the proposer and waits for its goroutines. It does not wait for
// what is not committed yet: call Wait before. It takes up to half a second to
// let the acceptors know what is committed, so that it can be read there. Only the first call does something; all return when that is done.
func (p *Proposer) Close() error {
	p.settle()
	p.mu.Lock()
	p.core.Stop(ErrClosed)
	p.perform()
	p.unlock(nil)
	p.tasks.Wait()
	return nil
}

// settle announces the commit LSN to every acceptor that is fed from memory
// and waits until they have confirmed it, or closeTimeout.
func (p *Proposer) settle() {
	deadline := time.NewTimer(closeTimeout)
	defer deadline.Stop()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		p.mu.Lock()
		settled := true
		for _, m := range p.members {
			if c := m.conn; p.state.Phase == consensus.Leading && c != nil && c.feeding && c.refill == nil && c.committed < p.state.Commit {
				settled = false
				if c.announced < p.state.Commit && c.pos >= p.state.Commit {
					c.beat()
				}
			}
		}
		p.mu.Unlock()
		if settled {
			return
		}
		select {
		case <-poll.C:
		case <-p.done:
			return
		case <-deadline.C:
			return
		}
	}
}
