package admin

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// fakeNode answers as an acceptor does, from memory, and can be told to fail.
type fakeNode struct {
	holdfastv1.UnimplementedAdminServiceServer
	holdfastv1.UnimplementedAcceptorServiceServer

	id   uint64
	addr string

	mu        sync.Mutex
	timelines map[string]*holdfastv1.TimelineStatus
	refuse    error // of CreateTimeline
	chunks    []*holdfastv1.ReadResponse
	asked     *holdfastv1.ReadRequest
}

// fakes starts n nodes and a client of all of them.
func fakes(t *testing.T, n int) ([]*fakeNode, *Client) {
	t.Helper()
	var nodes []*fakeNode
	var addrs []string
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f := &fakeNode{id: uint64(i + 1), addr: l.Addr().String(), timelines: map[string]*holdfastv1.TimelineStatus{}}
		server := grpc.NewServer(proto.ServerOptions()...)
		holdfastv1.RegisterAdminServiceServer(server, f)
		holdfastv1.RegisterAcceptorServiceServer(server, f)
		go server.Serve(l)
		t.Cleanup(server.Stop)
		nodes, addrs = append(nodes, f), append(addrs, f.addr)
	}
	c, err := Dial(addrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return nodes, c
}

func (f *fakeNode) GetNode(context.Context, *holdfastv1.GetNodeRequest) (*holdfastv1.GetNodeResponse, error) {
	return &holdfastv1.GetNodeResponse{NodeId: f.id}, nil
}

func (f *fakeNode) GetTimeline(_ context.Context, r *holdfastv1.GetTimelineRequest) (*holdfastv1.GetTimelineResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.timelines[r.GetTimeline()]
	if t == nil {
		return nil, proto.ToStatus(&consensus.Error{Reason: proto.ReasonNotFound, Detail: "no such timeline here"})
	}
	return &holdfastv1.GetTimelineResponse{Timeline: t}, nil
}

func (f *fakeNode) CreateTimeline(_ context.Context, r *holdfastv1.CreateTimelineRequest) (*holdfastv1.CreateTimelineResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return nil, proto.ToStatus(f.refuse)
	}
	if old := f.timelines[r.GetTimeline()]; old != nil {
		if string(old.CreationId) != string(r.GetReplaceCreationId()) || old.Term != 0 {
			return nil, proto.ToStatus(&consensus.Error{Reason: proto.ReasonVoted})
		}
	} else if r.ReplaceCreationId != nil {
		return nil, proto.ToStatus(&consensus.Error{Reason: proto.ReasonNotFound})
	}
	f.timelines[r.GetTimeline()] = &holdfastv1.TimelineStatus{
		Timeline: r.GetTimeline(), CreationId: r.GetCreationId(), NodeId: f.id, Membership: r.GetMembership(),
		Health: holdfastv1.Health_HEALTH_OK, FirstLsn: r.GetFirstLsn(), SystemId: r.GetSystemId(),
	}
	return &holdfastv1.CreateTimelineResponse{Created: true}, nil
}

func (f *fakeNode) DeleteTimeline(_ context.Context, r *holdfastv1.DeleteTimelineRequest) (*holdfastv1.DeleteTimelineResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.timelines[r.GetTimeline()]
	if t != nil && string(t.CreationId) != string(r.GetCreationId()) {
		return nil, proto.ToStatus(&consensus.Error{Reason: consensus.ReasonWrongTimeline})
	}
	delete(f.timelines, r.GetTimeline())
	return &holdfastv1.DeleteTimelineResponse{Deleted: t != nil}, nil
}

func (f *fakeNode) Read(r *holdfastv1.ReadRequest, s grpc.ServerStreamingServer[holdfastv1.ReadResponse]) error {
	f.asked = r
	for _, c := range f.chunks {
		if err := s.Send(c); err != nil {
			return err
		}
	}
	return nil
}

var (
	testID    = wal.TimelineID{Tenant: "prod", Timeline: "main"}
	errRefuse = &consensus.Error{Reason: proto.ReasonBusy, Detail: "not now"}
)
