package acceptor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/protobuf/types/known/durationpb"
)

// adminService is what operators and other acceptors use.
type adminService struct {
	holdfastv1.UnimplementedAdminServiceServer
	node *Node
}

func (s *adminService) CreateTimeline(ctx context.Context, in *holdfastv1.CreateTimelineRequest) (*holdfastv1.CreateTimelineResponse, error) {
	c, err := decodeCreation(in)
	if err != nil {
		return nil, s.node.status(err)
	}
	t, created, err := s.node.create(ctx, c)
	if err != nil {
		return nil, s.node.status(err)
	}
	v, err := t.look()
	if err != nil {
		return nil, s.node.status(err)
	}
	return &holdfastv1.CreateTimelineResponse{Created: created, Timeline: t.encode(v)}, nil
}

func decodeCreation(in *holdfastv1.CreateTimelineRequest) (*creation, error) {
	c := &creation{}
	var err error
	if c.id, err = proto.DecodeTimelineID(in.GetTimeline()); err != nil {
		return nil, err
	}
	st := &c.state
	if st.Creation, err = proto.DecodeCreationID(in.GetCreationId()); err != nil {
		return nil, err
	}
	if st.Membership, err = proto.DecodeMembership(in.GetMembership()); err != nil {
		return nil, err
	}
	if st.Membership.Generation != 1 || len(st.Membership.NewMembers) > 0 {
		return nil, &consensus.Error{Reason: consensus.ReasonMembership, Detail: "a timeline is created with membership generation 1 and one set of members"}
	}
	if in.ReplaceCreationId != nil {
		old, err := proto.DecodeCreationID(in.GetReplaceCreationId())
		if err != nil {
			return nil, err
		}
		c.replace = &old
	}
	st.SystemID = in.GetSystemId()
	st.FirstLSN = wal.LSN(in.GetFirstLsn())
	st.Commit, st.Horizon = st.FirstLSN, st.FirstLSN
	return c, nil
}

// listPageMax is the most timelines in one answer.
const listPageMax = 1000

func (s *adminService) ListTimelines(_ context.Context, in *holdfastv1.ListTimelinesRequest) (*holdfastv1.ListTimelinesResponse, error) {
	size := int(in.GetPageSize())
	if size <= 0 || size > listPageMax {
		size = listPageMax
	}
	page, more := s.node.registry.page(in.GetTenant(), in.GetPageToken(), size)
	out := &holdfastv1.ListTimelinesResponse{}
	for _, t := range page {
		v, err := t.look()
		if err != nil {
			// Deleted since, or not to be read now: the listing must go on.
			v = &view{health: wal.Lost, why: err.Error()}
			if t.isDeleted() {
				continue
			}
		}
		out.Timelines = append(out.Timelines, &holdfastv1.TimelineSummary{
			Timeline: t.name, CreationId: proto.EncodeCreationID(v.state.Creation), Health: proto.EncodeHealth(v.health),
			Term: uint64(v.state.Term), FlushLsn: uint64(v.flush), CommitLsn: uint64(v.commit), DiskBytes: uint64(v.diskBytes),
		})
	}
	if more {
		out.NextPageToken = page[len(page)-1].name
	}
	return out, nil
}

func (s *adminService) GetTimeline(_ context.Context, in *holdfastv1.GetTimelineRequest) (*holdfastv1.GetTimelineResponse, error) {
	if lost := s.node.absentStatus(in.GetTimeline()); lost != nil {
		return &holdfastv1.GetTimelineResponse{Timeline: lost}, nil
	}
	t, err := s.node.find1(in.GetTimeline())
	if err != nil {
		return nil, s.node.status(err)
	}
	v, err := t.look()
	if err != nil {
		return nil, s.node.status(err)
	}
	return &holdfastv1.GetTimelineResponse{Timeline: t.encode(v)}, nil
}

func (s *adminService) DeleteTimeline(ctx context.Context, in *holdfastv1.DeleteTimelineRequest) (*holdfastv1.DeleteTimelineResponse, error) {
	id, err := proto.DecodeTimelineID(in.GetTimeline())
	if err != nil {
		return nil, s.node.status(err)
	}
	creation, err := proto.DecodeCreationIDOrNone(in.GetCreationId())
	if err != nil {
		return nil, s.node.status(err)
	}
	deleted, err := s.node.delete(ctx, id, creation)
	if err != nil {
		return nil, s.node.status(err)
	}
	return &holdfastv1.DeleteTimelineResponse{Deleted: deleted}, nil
}

func (s *adminService) TrimTimeline(ctx context.Context, in *holdfastv1.TrimTimelineRequest) (*holdfastv1.TrimTimelineResponse, error) {
	out, err := s.node.trim(ctx, in)
	return out, s.node.status(err)
}

func (n *Node) trim(ctx context.Context, in *holdfastv1.TrimTimelineRequest) (*holdfastv1.TrimTimelineResponse, error) {
	t, r, err := n.acquireExact(in.GetTimeline(), in.GetCreationId())
	if err != nil {
		return nil, err
	}
	defer t.release(r)
	before := wal.LSN(in.GetBeforeLsn())
	if h := r.loop.Positions().Horizon; before > h {
		return nil, &consensus.Error{Reason: proto.ReasonAboveHorizon, Expected: h, Detail: fmt.Sprintf("%v cannot be trimmed to %v: up to the horizon %v every member has it, above it someone may need it", t.id, before, h)}
	}
	segments, bytes := trimmedBytes(r.log)
	r.wantSegment()
	done := make(chan error, 1)
	r.trim(before, func(err error) { done <- err })
	select {
	case err = <-done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case errors.Is(err, flush.ErrNoSpace):
		return nil, &consensus.Error{Reason: consensus.ReasonNoSpace, Detail: err.Error()}
	case errors.Is(err, flush.ErrUnhealthy):
		return nil, r.unhealthy()
	case err != nil:
		return nil, err
	}
	nowSegments, nowBytes := trimmedBytes(r.log)
	return &holdfastv1.TrimTimelineResponse{
		OldestLsn:       uint64(r.log.OldestLSN()),
		SegmentsRemoved: uint32(max(nowSegments-segments, 0)), BytesRemoved: uint64(max(nowBytes-bytes, 0)),
	}, nil
}

func (s *adminService) ReopenTimeline(ctx context.Context, in *holdfastv1.ReopenTimelineRequest) (*holdfastv1.ReopenTimelineResponse, error) {
	t, err := s.node.reopen(ctx, in)
	if err != nil {
		return nil, s.node.status(err)
	}
	v, err := t.look()
	if err != nil {
		return nil, s.node.status(err)
	}
	return &holdfastv1.ReopenTimelineResponse{Timeline: t.encode(v)}, nil
}

func (n *Node) reopen(ctx context.Context, in *holdfastv1.ReopenTimelineRequest) (*timeline, error) {
	creation, err := proto.DecodeCreationIDOrNone(in.GetCreationId())
	if err != nil {
		return nil, err
	}
	t, err := n.find1(in.GetTimeline())
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	v, err := t.lookLocked()
	if err != nil {
		return nil, err
	}
	if !v.state.Creation.IsZero() {
		if err := checkCreation(t.id, v.state.Creation, creation); err != nil {
			return nil, err
		}
	}
	if err := t.closeLocked(ctx, reopenError); err != nil {
		return nil, err
	}
	t.cold.Store(nil)
	_, err = t.openLocked()
	return t, err
}

func (s *adminService) GetNode(context.Context, *holdfastv1.GetNodeRequest) (*holdfastv1.GetNodeResponse, error) {
	n := s.node
	free, total := n.disk()
	out := &holdfastv1.GetNodeResponse{
		NodeId: uint64(n.cfg.NodeID), Version: n.cfg.Version, Uptime: durationpb.New(time.Since(n.started)),
		DataDir: n.cfg.DataDir, DiskFreeBytes: free, DiskTotalBytes: total,
		Timelines: n.count(),
		Limits: &holdfastv1.NodeLimits{
			RequestBytesMax: wal.RequestBytesMax, WindowBytes: uint64(n.cfg.WindowBytes),
			InboxBytes: uint64(n.cfg.InboxBytes), InboxBytesNode: uint64(n.cfg.InboxBytesNode),
			SegmentBytes: uint64(n.cfg.SegmentBytes), RetainBytes: n.cfg.RetainBytes,
		},
		NotReadyReasons: n.NotReady(),
	}
	out.Ready = len(out.NotReadyReasons) == 0
	return out, nil
}

// find1 returns the timeline of a name that came over the wire.
func (n *Node) find1(name string) (*timeline, error) {
	id, err := proto.DecodeTimelineID(name)
	if err != nil {
		return nil, err
	}
	t := n.registry.get(id)
	if t == nil {
		return nil, n.notHere(id)
	}
	return t, nil
}

// acquireExact opens the timeline of a name for a call about one creation.
func (n *Node) acquireExact(name string, creationID []byte) (*timeline, *replica, error) {
	creation, err := proto.DecodeCreationID(creationID)
	if err != nil {
		return nil, nil, err
	}
	t, err := n.find1(name)
	if err != nil {
		return nil, nil, err
	}
	r, err := t.acquire()
	if err != nil {
		return nil, nil, err
	}
	if err := checkCreation(t.id, r.loop.State().Creation, creation); err != nil {
		t.release(r)
		return nil, nil, err
	}
	return t, r, nil
}
