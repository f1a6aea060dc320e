package acceptor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// RepairTimeline writes a quarantined copy anew beside the damaged one: what is
// undamaged from its own disk, the rest from peers, and then puts it in its
// place. A copy whose state may be damaged is not repaired: it is a lost disk.
func (s *adminService) RepairTimeline(in *holdfastv1.RepairTimelineRequest, stream grpc.ServerStreamingServer[holdfastv1.RepairTimelineResponse]) error {
	t, r, err := s.node.acquireExact(in.GetTimeline(), in.GetCreationId())
	if err != nil {
		return s.node.status(err)
	}
	defer t.release(r)
	return s.node.status(r.repair(stream.Context(), wal.NodeID(in.GetFromNodeId()), stream.Send))
}

// repairing is one repair under way.
type repairing struct {
	*replica
	only   wal.NodeID // ask only this peer; 0: any
	report func(*holdfastv1.RepairTimelineResponse) error

	state    wal.State // as it will be; nothing changes it while the copy is quarantined
	end      wal.LSN
	rebuild  *storage.Rebuild
	bulk     bulk // writes the new log
	out      holdfastv1.RepairTimelineResponse
	reported time.Time
}

func (r *replica) repair(ctx context.Context, only wal.NodeID, report func(*holdfastv1.RepairTimelineResponse) error) error {
	if !r.repairs.CompareAndSwap(false, true) {
		return &consensus.Error{Reason: proto.ReasonBusy, Detail: fmt.Sprintf("%v is being repaired already", r.t.id)}
	}
	defer r.repairs.Store(false)
	p := r.loop.Positions()
	switch p.Health {
	case wal.Healthy:
		return report(&holdfastv1.RepairTimelineResponse{})
	case wal.Quarantined:
	default:
		return r.unhealthy()
	}
	for _, d := range r.log.Damage() {
		if d.End == storage.EndUnknown {
			return &consensus.Error{Reason: consensus.ReasonLost, Detail: fmt.Sprintf("it cannot be told how much of %v is damaged, so it cannot be told what was acknowledged: %v", r.t.id, d)}
		}
	}
	if err := r.roomForAnother(); err != nil {
		r.repaired(err)
		return err
	}
	from := r.log.OldestLSN()
	x := &repairing{replica: r, only: only, report: report, state: r.loop.State().Clone(), end: p.Flush, reported: time.Now()}
	x.state.Commit, x.state.Horizon = p.Commit, p.Horizon
	x.out.BytesTotal = uint64(x.end - from)
	var err error
	if x.rebuild, err = storage.NewRebuild(r.t.storageConfig(), x.state, from); err != nil {
		return err
	}
	x.bulk = bulk{log: x.rebuild.Log, commit: x.state.Commit, at: from, wrote: func() {}}
	if err := x.copy(ctx); err != nil {
		if storage.IsNoSpace(err) {
			err = &consensus.Error{Reason: consensus.ReasonNoSpace, Detail: err.Error()}
		}
		r.repaired(err)
		return errors.Join(err, x.rebuild.Abort())
	}
	if err := x.exchange(ctx); err != nil {
		r.repaired(err)
		return err
	}
	r.t.node.cfg.Metrics.Repairs.Inc(metrics.RepairDone)
	x.out.BytesDone = x.out.BytesTotal
	return report(&x.out)
}

// copy fills the new log.
func (x *repairing) copy(ctx context.Context) error {
	reader := x.log.NewReader(x.bulk.at)
	defer reader.Close()
	for x.bulk.at < x.end {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := reader.Next(x.end)
		var damage *storage.DamageError
		switch {
		case errors.As(err, &damage):
			d := damage.Damage
			d.Begin, d.End = x.bulk.at, max(min(d.End, x.end), x.bulk.at+1)
			if err := x.fetch(ctx, d.End); err != nil {
				return err
			}
			x.out.Repaired = append(x.out.Repaired, encodeDamage(d))
			reader.Skip(x.bulk.at)
		case err == io.EOF:
			return fmt.Errorf("the log ends at %v, expected %v", x.bulk.at, x.end)
		case err != nil:
			return err
		default:
			if err := x.append(ctx, f.Term, f.Chunk); err != nil {
				return err
			}
		}
	}
	return x.bulk.write(ctx)
}

// append adds a chunk to the new log.
func (x *repairing) append(ctx context.Context, term wal.Term, c wal.Chunk) error {
	if err := x.bulk.add(ctx, term, c); err != nil {
		return err
	}
	x.out.BytesDone += uint64(len(c.Data))
	if now := time.Now(); now.Sub(x.reported) >= scrubReportEvery {
		x.reported = now
		if err := x.report(&x.out); err != nil {
			return err
		}
		x.out.Repaired = nil
	}
	return nil
}

// fetch gets the bytes up to end from peers, one after another.
func (x *repairing) fetch(ctx context.Context, end wal.LSN) error {
	var reasons []error
	for _, m := range x.state.Membership.Members {
		if m.ID == x.t.node.cfg.NodeID || x.only != 0 && m.ID != x.only {
			continue
		}
		err := x.fetchFrom(ctx, m, end)
		if x.bulk.at >= end {
			return nil
		}
		if err == nil {
			err = errors.New("it does not have all of the range")
		}
		reasons = append(reasons, fmt.Errorf("node %d: %w", m.ID, err))
	}
	return &consensus.Error{Reason: proto.ReasonCorrupt, Expected: x.bulk.at, Detail: fmt.Sprintf("no peer could give [%v, %v): %v", x.bulk.at, end, errors.Join(reasons...))}
}

// fetchFrom gets what one peer has: what it knows to be committed, which is the
// same everywhere; and then what it holds beyond, if that is of the very term
// that wrote it here, for then the logs are equal up to there.
func (x *repairing) fetchFrom(ctx context.Context, m wal.Member, end wal.LSN) error {
	conn, err := x.t.node.gossip.conn(m.Addr)
	if err != nil {
		return err
	}
	x.out.FromNodeId = uint64(m.ID)
	if committed := min(end, x.state.Commit); x.bulk.at < committed {
		err := x.readFrom(ctx, conn, committed, nil)
		if err != nil {
			return err
		}
	}
	if x.bulk.at >= end {
		return nil
	}
	status, err := holdfastv1.NewAdminServiceClient(conn).GetTimeline(ctx, &holdfastv1.GetTimelineRequest{Timeline: x.t.name})
	if err != nil {
		return err
	}
	history, err := proto.DecodeHistory(status.GetTimeline().GetHistory())
	if err != nil {
		return err
	}
	return x.readFrom(ctx, conn, end, &holdfastv1.Recovery{PinnedTerm: uint64(history.LastTerm())})
}

// readFrom appends what a peer sends of [at, end). Without recovery that is
// committed; with it, each run's term must be the one that wrote there here.
func (x *repairing) readFrom(ctx context.Context, conn *grpc.ClientConn, end wal.LSN, recovery *holdfastv1.Recovery) error {
	part := peerRange{timeline: x.t.name, creation: x.state.Creation, begin: x.bulk.at, end: end, recovery: recovery}
	return readPeer(ctx, conn, part, func(term wal.Term, c wal.Chunk) error {
		own := &x.state.History
		if recovery != nil && (term == 0 || own.TermAt(c.Begin) != term || own.TermAt(c.End()-1) != term) {
			return fmt.Errorf("its bytes from %v on are of term %d, those that were here of term %d", c.Begin, term, own.TermAt(c.Begin))
		}
		if err := x.append(ctx, term, c); err != nil {
			return err
		}
		x.t.node.cfg.Metrics.RepairedBytes.Add(float64(len(c.Data)))
		return nil
	})
}

// exchange puts the new log in the place of the damaged one and opens it.
func (x *repairing) exchange(ctx context.Context) error {
	t := x.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open.Load() != x.replica || t.deleted {
		return errors.Join(closedError, x.rebuild.Abort())
	}
	why := "damaged"
	if w := x.why.Load(); w != nil {
		why = *w
	}
	if err := t.closeLocked(ctx, reopenError); err != nil {
		return errors.Join(err, x.rebuild.Abort())
	}
	if err := x.rebuild.Finish(&x.state, why); err != nil {
		return err
	}
	r, err := t.openLocked()
	if err != nil {
		return err
	}
	t.node.log.Info("a damaged timeline was repaired; the damaged files are kept beside it",
		r.keys(zap.Stringer("flush_lsn", r.log.FlushLSN()), zap.Stringer("health", r.log.Health()))...)
	return nil
}
