package acceptor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

const (
	fillAskTimeout = 5 * time.Second
	// A fill asks again what is committed when it has got there, but does not
	// follow a log that is being written for ever.
	fillRoundsMax = 5
	fillLagEnough = 1 << 20
)

// FillTimeline makes, or goes on with, the copy for reading of a timeline that
// this node has lost. See filled.go for what such a copy is.
func (s *adminService) FillTimeline(in *holdfastv1.FillTimelineRequest, stream grpc.ServerStreamingServer[holdfastv1.FillTimelineResponse]) error {
	return s.node.status(s.node.fill(stream.Context(), in, stream.Send))
}

// filling is one fill under way.
type filling struct {
	node     *Node
	id       wal.TimelineID
	creation wal.CreationID
	only     wal.NodeID // ask only this peer; 0: any
	members  wal.Membership
	report   func(*holdfastv1.FillTimelineResponse) error

	sources  []source
	log      *storage.Log
	bulk     bulk
	out      holdfastv1.FillTimelineResponse
	reported time.Time
}

// source is a peer that has the timeline.
type source struct {
	member wal.Member
	conn   *grpc.ClientConn
	status *holdfastv1.TimelineStatus
}

func (n *Node) fill(ctx context.Context, in *holdfastv1.FillTimelineRequest, report func(*holdfastv1.FillTimelineResponse) error) error {
	x := &filling{node: n, only: wal.NodeID(in.GetFromNodeId()), report: report, reported: time.Now()}
	var err error
	if x.id, err = proto.DecodeTimelineID(in.GetTimeline()); err != nil {
		return err
	}
	if x.creation, err = proto.DecodeCreationID(in.GetCreationId()); err != nil {
		return err
	}
	if x.members, err = proto.DecodeMembership(in.GetMembership()); err != nil {
		return err
	}
	if err := x.ask(ctx); err != nil {
		return err
	}
	t, err := x.begin(ctx)
	if err != nil {
		return err
	}
	err = x.run(ctx)
	if err == nil {
		err = x.finish()
	}
	err = errors.Join(err, x.log.Close(nil))
	if end := x.end(t); err == nil {
		err = end
	}
	if storage.IsNoSpace(err) {
		return &consensus.Error{Reason: consensus.ReasonNoSpace, Expected: x.bulk.at, Detail: fmt.Sprintf("the disk is full; when there is room, run it again, it goes on: %v", err)}
	}
	if err != nil {
		return err
	}
	n.log.Info("a lost copy was filled for reading", zap.String("timeline", t.name), zap.Uint64("filled_lsn", x.out.FilledLsn))
	return report(&x.out)
}

// ask finds the peers that have the timeline. What they say of its members
// counts, not what the caller says.
func (x *filling) ask(ctx context.Context) error {
	var sources []source
	self := x.node.cfg.NodeID
	var reasons []error
	written := false
	for _, m := range x.members.Members {
		if m.ID == self {
			continue
		}
		s, err := x.askOne(ctx, m)
		if err != nil {
			reasons = append(reasons, fmt.Errorf("node %d: %w", m.ID, err))
			continue
		}
		written = written || s.status.GetTerm() != 0 || s.status.GetFilled()
		if x.only == 0 || m.ID == x.only {
			sources = append(sources, *s)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(sources) == 0 {
		return &consensus.Error{Reason: proto.ReasonNotFound, Detail: fmt.Sprintf("no peer gives %v: %v", x.id, errors.Join(reasons...))}
	}
	if !written {
		return &consensus.Error{Reason: consensus.ReasonProtocol, Detail: fmt.Sprintf("%v has never been written to, so nothing is lost: its creation has to be completed", x.id)}
	}
	x.sources = sources
	return nil
}

func (x *filling) askOne(ctx context.Context, m wal.Member) (*source, error) {
	conn, err := x.node.gossip.conn(m.Addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fillAskTimeout)
	defer cancel()
	r, err := holdfastv1.NewAdminServiceClient(conn).GetTimeline(ctx, &holdfastv1.GetTimelineRequest{Timeline: x.id.String()})
	if err != nil {
		return nil, err
	}
	s := &source{m, conn, r.GetTimeline()}
	if s.status.GetHealth() == holdfastv1.Health_HEALTH_LOST && !s.status.GetFilled() {
		return nil, errors.New("its copy is lost, too")
	}
	creation, err := proto.DecodeCreationIDOrNone(s.status.GetCreationId())
	if err != nil {
		return nil, err
	}
	if err := checkCreation(x.id, x.creation, creation); err != nil {
		return nil, err
	}
	if wal.NodeID(s.status.GetNodeId()) != m.ID {
		return nil, fmt.Errorf("node %d answers at its address %s", s.status.GetNodeId(), m.Addr)
	}
	members, err := proto.DecodeMembership(s.status.GetMembership())
	if err != nil {
		return nil, err
	}
	if !members.Has(x.node.cfg.NodeID) {
		return nil, &consensus.Error{Reason: consensus.ReasonMembership, Detail: fmt.Sprintf("node %d is no member of %v", x.node.cfg.NodeID, x.id)}
	}
	return s, nil
}

// best is the source that knows most to be committed.
func (x *filling) best() *source {
	best := &x.sources[0]
	for i := range x.sources {
		if s := &x.sources[i]; s.status.GetCommitLsn() > best.status.GetCommitLsn() {
			best = s
		}
	}
	return best
}

// run fetches what is committed, round by round.
func (x *filling) run(ctx context.Context) error {
	for range fillRoundsMax {
		target := wal.LSN(x.best().status.GetCommitLsn())
		x.out.CommitLsn = max(uint64(target), uint64(x.bulk.at))
		if err := x.tell(); err != nil {
			return err
		}
		if err := x.fetch(ctx, target); err != nil {
			return err
		}
		if x.ask(ctx) != nil {
			return ctx.Err() // what was committed when it began is here
		}
		if now := wal.LSN(x.best().status.GetCommitLsn()); now <= target+fillLagEnough {
			break
		}
	}
	return nil
}

// fetch gets what is committed below end from one peer after another.
func (x *filling) fetch(ctx context.Context, end wal.LSN) error {
	var reasons []error
	for _, s := range x.sources {
		if x.bulk.at >= end {
			break
		}
		x.out.FromNodeId = uint64(s.member.ID)
		part := peerRange{timeline: x.id.String(), creation: x.creation, begin: x.bulk.at, end: end}
		err := readPeer(ctx, s.conn, part, func(term wal.Term, c wal.Chunk) error {
			x.node.cfg.Metrics.FilledBytes.Add(float64(len(c.Data)))
			x.bulk.commit = max(x.bulk.commit, c.End()) // a peer sends nothing else
			return x.bulk.add(ctx, term, c)
		})
		if stopped := x.log.Err(); stopped != nil {
			return stopped
		}
		if err != nil {
			reasons = append(reasons, fmt.Errorf("node %d: %w", s.member.ID, err))
		}
		if err := x.bulk.write(ctx); err != nil {
			return err
		}
	}
	if x.bulk.at < end {
		return &consensus.Error{Reason: proto.ReasonBusy, Expected: x.bulk.at, Detail: fmt.Sprintf("filled up to %v, no peer gives [%v, %v): %v; run it again, it goes on from here", x.bulk.at, x.bulk.at, end, errors.Join(reasons...))}
	}
	return nil
}

// wrote is called after every sync.
func (x *filling) wrote() {
	x.out.FilledLsn = uint64(x.log.FlushLSN())
	if time.Since(x.reported) >= scrubReportEvery {
		_ = x.tell() // a caller that is gone ends the context, too
	}
}

func (x *filling) tell() error {
	x.reported = time.Now()
	return x.report(&x.out)
}

// finish saves what a reader wants to know of the log besides its bytes. No
// term and no vote: this node does not know any of its own.
func (x *filling) finish() error {
	status := x.best().status
	st := x.log.State()
	var err error
	if st.Membership, err = proto.DecodeMembership(status.GetMembership()); err != nil {
		return err
	}
	history, err := proto.DecodeHistory(status.GetHistory())
	if err != nil {
		return err
	}
	st.History = history.Visible(x.bulk.at)
	st.SystemID, st.Properties = status.GetSystemId(), status.GetProperties()
	st.Commit = x.bulk.at
	x.out.FilledLsn, x.out.CommitLsn = uint64(x.bulk.at), uint64(x.bulk.at)
	return x.log.SaveStateAlone(&st)
}
