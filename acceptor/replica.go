package acceptor

import (
	"sync/atomic"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
)

// replica is a timeline whose log is open: the log and the loop that writes
// it. Opening a log again, after a disk error for one, makes another replica.
type replica struct {
	t    *timeline
	log  *storage.Log
	loop *flush.Loop

	filled bool // a copy for reading only

	users int // streams and calls that need it open; guarded by t.mu

	why      atomic.Pointer[string]  // why the health is not OK
	proposer atomic.Pointer[contact] // whose greeting was answered last and whose stream is open
	heard    atomic.Int64            // node clock of the last message of a proposer; 0: none
	used     atomic.Int64            // node clock of the last release

	// Of the segments.
	wrote         atomic.Int64 // node clock of the last write
	written       atomic.Int64 // bytes appended since the log was opened
	queued        atomic.Bool  // waits for a preparer
	prepareFailed atomic.Bool  // the last preparation failed
	hot           atomic.Bool  // has descriptors open; see hotSet
	cooling       atomic.Bool  // is asked to give them back
	trimming      atomic.Bool  // retention has a trim under way
	repairs       atomic.Bool  // a repair is under way

	// Of the loop's goroutine only.
	state *wal.State // as it was saved last

	heal healing
	mend healing // when a damaged copy is to be repaired

	unrepaired atomic.Pointer[string] // why the last repair failed
}

// contact is a proposer whose stream is open.
type contact struct {
	proposer   wal.ProposerID
	connection uint64
	addr       string
}

// newReplica starts a loop for an open log.
func newReplica(t *timeline, log *storage.Log) *replica {
	n := t.node
	st := log.State()
	r := &replica{t: t, log: log, state: &st, filled: t.filled.Load()}
	health := log.Health()
	if r.filled {
		health = wal.Lost // whatever it holds: it never votes
	}
	r.used.Store(n.now())
	acc := consensus.NewAcceptor(consensus.AcceptorConfig{
		Node: n.cfg.NodeID, Timeline: t.id,
		RequestBytesMax: wal.RequestBytesMax, WindowBytes: n.cfg.WindowBytes,
	}, st, log.FlushLSN(), health)
	r.loop = flush.NewLoop(flush.Config{
		Acceptor: acc, Log: log, Pool: n.pool, InboxBytes: n.cfg.InboxBytes,
		BatchBytesMax: n.cfg.BatchBytesMax, BatchRequestsMax: n.cfg.BatchRequestsMax,
		Clock: n.now, Observe: r.observe, Waited: n.inboxWaited, Failed: r.failed, Blocked: r.blocked,
		Janitor: n.janitor,
	})
	r.loop.Start()
	return r
}

// ended reports whether the loop has ended for good.
func (r *replica) ended() bool {
	select {
	case <-r.loop.Stopped():
		return true
	default:
		return false
	}
}

// observe counts a batch. It runs on the loop's goroutine.
func (r *replica) observe(t *flush.Turn) {
	n := r.t.node
	m := n.cfg.Metrics
	if t.Heard > 0 {
		r.heard.Store(n.now())
		m.QueueSeconds.Observe(seconds(t.QueueNanos))
		if t.Heartbeats > 0 {
			m.Heartbeats.Add(float64(t.Heartbeats))
		}
	}
	for _, reason := range t.Refused {
		if reason == consensus.ReasonStaleStream {
			m.StreamsReplaced.Inc()
		}
	}
	if t.Err != nil {
		op := metrics.DiskWrite
		if t.SyncNanos > 0 {
			op = metrics.DiskSync
		}
		m.DiskErrors.Inc(op)
		return
	}
	if !t.Wrote {
		return
	}
	m.WriteSeconds.Observe(seconds(t.WriteNanos))
	m.FlushSeconds.Observe(seconds(t.SyncNanos))
	if t.Appends > 0 {
		m.BatchAppends.Observe(float64(t.Appends))
		m.BatchBytes.Observe(float64(t.Bytes))
		m.Appends.Add(float64(t.Appends))
		m.AppendBytes.Add(float64(t.Bytes))
		r.written.Add(int64(t.Bytes))
	}
	if t.Saved != nil {
		r.saved(t)
	}
	r.wrote.Store(n.now())
	n.hot.enter(r)
	r.wantSegment()
}

// saved counts what a new state says about elections.
func (r *replica) saved(t *flush.Turn) {
	m := r.t.node.cfg.Metrics
	if last := t.Saved.History.LastTerm(); last != r.state.History.LastTerm() {
		m.Elections.Inc()
		r.t.node.log.Info("a proposer was elected", r.keys(zap.Uint64("term", uint64(last)), zap.Stringer("lsn", t.Saved.History[len(t.Saved.History)-1].LSN))...)
	}
	if t.Cut > 0 {
		m.Truncations.Inc()
		m.TruncatedBytes.Add(float64(t.Cut))
		r.t.node.log.Info("the log's end was truncated", r.keys(zap.Uint64("term", uint64(t.Saved.Term)), zap.Uint64("bytes", uint64(t.Cut)))...)
	}
	r.state = t.Saved
}

// failed hears of the disk error that has poisoned the log.
func (r *replica) failed(err error) {
	r.why.Store(new(err.Error()))
	r.t.node.log.Error("a disk error has poisoned a timeline: it takes no votes and no appends until it has been opened again and read from the disk",
		r.keys(zap.Stringer("flush_lsn", r.loop.Positions().Flush), zap.Error(err))...)
	r.heal.schedule(reopenAfterMin)
}

// quarantine hears of damage that a reader or a scrub has found. It waits for
// the disk, and t.mu is not held.
func (r *replica) quarantine(err error) {
	if r.why.CompareAndSwap(nil, new(err.Error())) {
		r.t.node.log.Error("a timeline is damaged and quarantined", r.keys(zap.Error(err))...)
	}
	r.t.node.cfg.Metrics.ChecksumFailures.Inc()
	r.loop.Post(flush.Quarantine())
	r.mendSoon()
	r.recordDamage()
}

// blocked hears that a message waits for the next segment.
func (r *replica) blocked() { r.t.node.preparer.add(r) }

// eagerBytes is how much a log must have taken before its next segment is made
// as soon as it can be: a timeline that is hardly used does with one.
const eagerBytes = 1 << 20

// wantSegment has the next segment made ahead of need. It only looks at memory.
func (r *replica) wantSegment() {
	if r.prepareFailed.Load() || !r.log.NeedsPrepare() {
		return
	}
	if r.written.Load() < eagerBytes && r.log.Space(1, wal.RequestBytesMax) == flush.SpaceOpen {
		return
	}
	r.t.node.preparer.add(r)
}

// keys are the log line's fields that say which timeline it is about.
func (r *replica) keys(more ...zap.Field) []zap.Field {
	return append([]zap.Field{zap.String("timeline", r.t.name)}, more...)
}

func seconds(nanos int64) float64 { return float64(nanos) / 1e9 }

// segmentObserver counts operations on segments.
type segmentObserver struct{ m *metrics.Acceptor }

func (o segmentObserver) SegmentEvent(event storage.SegmentEvent, bytes int64) {
	op := map[storage.SegmentEvent]metrics.SegmentOp{
		storage.SegmentPrepared: metrics.SegmentCreate,
		storage.SegmentRecycled: metrics.SegmentRecycle,
		storage.SegmentSpare:    metrics.SegmentSpare,
		storage.SegmentSealed:   metrics.SegmentRotate,
		storage.SegmentRemoved:  metrics.SegmentRemove,
	}[event]
	o.m.SegmentOps.Inc(op)
	if event == storage.SegmentRemoved || event == storage.SegmentRecycled {
		o.m.TrimmedBytes.Add(float64(bytes))
	}
}
