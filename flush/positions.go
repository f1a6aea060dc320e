package flush

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Positions are what readers of a log need to know of it, as of one moment.
type Positions struct {
	Flush   wal.LSN
	Commit  wal.LSN
	Horizon wal.LSN
	// LastLogTerm is the term of the newest durable byte.
	LastLogTerm wal.Term
	// StoredLastTerm is the last term of the stored history, whether or not
	// the log has reached it. A recovery read pinned to term N needs it to be N (A6).
	StoredLastTerm wal.Term
	Health         wal.Health
}

// board is where a loop publishes its positions after each turn. To write
// costs a few stores; only a reader that waits makes it cost more.
type board struct {
	// seq is odd while the fields change.
	seq atomic.Uint64
	// The fields of Positions.
	flush, commit, horizon, lastLogTerm, storedLastTerm, health atomic.Uint64

	state atomic.Pointer[wal.State] // as last saved; never written to

	waiters atomic.Int32
	mu      sync.Mutex
	changed chan struct{} // closed at the next change; nil while nobody waits
}

// publish stores what the machine knows; st is nil if the saved state is the same as before.
func (x *board) publish(s consensus.Status, stored wal.Term, st *wal.State) {
	if st != nil {
		x.state.Store(st)
	}
	x.seq.Add(1)
	x.flush.Store(uint64(s.Flush))
	x.commit.Store(uint64(s.Commit))
	x.horizon.Store(uint64(s.Horizon))
	x.lastLogTerm.Store(uint64(s.LastLogTerm))
	x.storedLastTerm.Store(uint64(stored))
	x.health.Store(uint64(s.Health))
	x.seq.Add(1)
}

// wake lets those who wait look again.
func (x *board) wake() {
	if x.waiters.Load() == 0 {
		return
	}
	x.mu.Lock()
	if x.changed != nil {
		close(x.changed)
		x.changed = nil
	}
	x.mu.Unlock()
}

func (x *board) read() Positions {
	for {
		before := x.seq.Load()
		p := Positions{
			Flush: wal.LSN(x.flush.Load()), Commit: wal.LSN(x.commit.Load()), Horizon: wal.LSN(x.horizon.Load()),
			LastLogTerm: wal.Term(x.lastLogTerm.Load()), StoredLastTerm: wal.Term(x.storedLastTerm.Load()),
			Health: wal.Health(x.health.Load()),
		}
		if before&1 == 0 && x.seq.Load() == before {
			return p
		}
	}
}

// wait returns the positions as soon as enough says that they will do.
func (x *board) wait(ctx context.Context, stopped <-chan struct{}, enough func(Positions) bool) (Positions, error) {
	if p := x.read(); enough(p) {
		return p, nil
	}
	x.waiters.Add(1)
	defer x.waiters.Add(-1)
	for {
		x.mu.Lock()
		if x.changed == nil {
			x.changed = make(chan struct{})
		}
		changed := x.changed
		x.mu.Unlock()
		if p := x.read(); enough(p) {
			return p, nil
		}
		select {
		case <-changed:
		case <-stopped:
			return x.read(), ErrClosed
		case <-ctx.Done():
			return x.read(), ctx.Err()
		}
	}
}
