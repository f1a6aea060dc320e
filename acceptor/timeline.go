package acceptor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proto"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
)

// timeline is one name in the data directory. Cold, it is just this struct.
type timeline struct {
	node *Node
	id   wal.TimelineID
	name string // of id

	// mu is held while the log is opened, closed, deleted or replaced, which
	// all wait for the disk. The loop's goroutine never takes it.
	mu      sync.Mutex
	deleted bool

	open atomic.Pointer[replica] // nil while cold; changed under mu
	cold atomic.Pointer[view]    // what a look at the cold copy found; nil if nobody looked
	sick atomic.Pointer[illness] // why it could not be opened; nil if it could

	filled  atomic.Bool             // is a copy for reading only; never false again while deleted is
	filling atomic.Pointer[filling] // writes that copy now; changed under mu
}

// illness is why a log could not be opened, and when that is worth another try.
type illness struct {
	health wal.Health
	err    *consensus.Error
	retry  time.Time // zero: never by itself
	wait   time.Duration
}

// Back-off between attempts to open a log that a disk error has closed.
const (
	reopenAfterMin = time.Second
	reopenAfterMax = time.Minute
)

func newTimeline(n *Node, id wal.TimelineID) *timeline {
	return &timeline{node: n, id: id, name: id.String()}
}

func (t *timeline) storageConfig() storage.Config {
	c := &t.node.cfg
	return storage.Config{
		FS: c.FS, Dir: t.dirOf(), Spares: t.node.spares,
		SegmentBytes: c.SegmentBytes, FirstSegmentBytes: c.FirstSegmentBytes,
		Observer: segmentObserver{c.Metrics},
	}
}

// acquire opens the timeline if it is cold and keeps it open until release.
func (t *timeline) acquire() (*replica, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted {
		return nil, notFound(t.id)
	}
	if r := t.open.Load(); r != nil && r.ended() {
		// Its end took longer than whoever asked for it would wait.
		if err := t.closeLocked(context.Background(), closedError); err != nil {
			return nil, err
		}
	}
	r := t.open.Load()
	if r == nil {
		if s := t.sick.Load(); s != nil && (s.retry.IsZero() || time.Now().Before(s.retry)) {
			return nil, s.err
		}
		var err error
		if r, err = t.openLocked(); err != nil {
			return nil, err
		}
	}
	r.users++
	return r, nil
}

// release undoes acquire.
func (t *timeline) release(r *replica) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.users--
	r.used.Store(t.node.now())
}

// openLocked opens the log and starts its loop. mu is held.
func (t *timeline) openLocked() (*replica, error) {
	n := t.node
	if n.draining.Load() {
		return nil, drainingError
	}
	start := time.Now()
	if t.filling.Load() != nil {
		return nil, busyFilling(t.id)
	}
	log, err := t.openLog()
	n.cfg.Metrics.RecoverySeconds.Observe(time.Since(start).Seconds())
	if ill := t.diagnose(log, err); ill != nil {
		t.sick.Store(ill)
		return nil, ill.err
	}
	if err != nil && log == nil {
		// Says nothing about the log: no descriptors, perhaps.
		n.log.Warn("cannot open a timeline now", zap.String("timeline", t.name), zap.Error(err))
		return nil, &consensus.Error{Reason: proto.ReasonStarting, Detail: fmt.Sprintf("%v cannot be opened now: %v", t.id, err)}
	}
	r := newReplica(t, log)
	if r.filled {
		r.why.Store(new(filledWhy(log.FlushLSN())))
	} else if err != nil {
		r.why.Store(new(err.Error()))
		if log.Health() == wal.Quarantined {
			r.mendSoon()
		}
		n.log.Error("a timeline is damaged", zap.String("timeline", t.name), zap.Stringer("health", log.Health()), zap.Error(err))
	}
	t.sick.Store(nil)
	t.open.Store(r)
	n.opened.add(t)
	return r, nil
}

// diagnose turns what opening reported into an illness; nil if there is a log
// to work with or if it says nothing about the log.
func (t *timeline) diagnose(log *storage.Log, err error) *illness {
	var corrupt *storage.CorruptionError
	var poisoned *storage.PoisonedError
	switch {
	case err == nil:
		st := log.State()
		if st.Horizon > st.Commit || st.Commit > log.FlushLSN() || !st.Membership.Has(t.node.cfg.NodeID) {
			detail := fmt.Sprintf("the copy's state is not this node's or contradicts itself: horizon %v, commit %v, flush %v, members %v", st.Horizon, st.Commit, log.FlushLSN(), st.Membership.Members)
			_ = log.Close(nil) // nothing was written
			return t.lost(detail)
		}
		return nil
	case errors.As(err, &poisoned):
		t.node.cfg.Metrics.DiskErrors.Inc(metrics.DiskOpen)
		wait := reopenAfterMin
		if s := t.sick.Load(); s != nil && s.wait > 0 {
			wait = min(2*s.wait, reopenAfterMax)
		}
		t.node.log.Error("a timeline's log cannot be proved", zap.String("timeline", t.name), zap.Error(err), zap.Duration("retry_after", wait))
		return &illness{
			health: wal.Poisoned, retry: time.Now().Add(wait), wait: wait,
			err: &consensus.Error{Reason: consensus.ReasonPoisoned, Detail: err.Error()},
		}
	case errors.Is(err, storage.ErrNotFound):
		return t.lost("the directory is there and holds no log")
	case errors.As(err, &corrupt) && log == nil:
		return t.lost(err.Error())
	}
	return nil
}

func (t *timeline) lost(detail string) *illness {
	t.node.log.Error("a timeline's copy is lost and must be rebuilt", zap.String("timeline", t.name), zap.String("reason", detail))
	return &illness{health: wal.Lost, err: &consensus.Error{Reason: consensus.ReasonLost, Detail: detail}}
}

// closeLocked ends the replica: its streams get err, what was received is
// performed. mu is held. An error means that it is still open.
func (t *timeline) closeLocked(ctx context.Context, err *consensus.Error) error {
	r := t.open.Load()
	if r == nil {
		return nil
	}
	if e := r.loop.Stop(ctx, err); e != nil {
		return fmt.Errorf("%v does not come to an end, its disk may hang: %w", t.id, e)
	}
	t.open.Store(nil)
	t.node.opened.remove(t)
	t.node.hot.leave(r)
	if e := r.log.Close(nil); e != nil && r.loop.Positions().Health == wal.Healthy {
		t.node.log.Warn("closing a timeline", zap.String("timeline", t.name), zap.Error(e))
	}
	t.cold.Store(nil)
	return nil
}

// closeIfUnused is closeLocked for a timeline that nobody uses; it does nothing otherwise.
func (t *timeline) closeIfUnused(ctx context.Context, r *replica) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeLimit)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open.Load() == r && (r.users == 0 || r.ended()) {
		_ = t.closeLocked(ctx, closedError) // the next round tries again
	}
}

// openedSet is the timelines that have a log open.
type openedSet struct {
	mu  sync.Mutex
	set map[*timeline]struct{}
}

func (o *openedSet) add(t *timeline) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.set == nil {
		o.set = map[*timeline]struct{}{}
	}
	o.set[t] = struct{}{}
}

func (o *openedSet) remove(t *timeline) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.set, t)
}

func (o *openedSet) list() []*timeline {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]*timeline, 0, len(o.set))
	for t := range o.set {
		out = append(out, t)
	}
	return out
}

var _ flush.Log = (*storage.Log)(nil)
