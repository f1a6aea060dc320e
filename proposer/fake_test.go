package proposer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// cluster is acceptors in this process, reached over pipes in memory. The rules
// are the real state machine; the disk is a byte slice that survives restarts.
type cluster struct {
	nodes      []*node
	timeline   wal.TimelineID
	creation   wal.CreationID
	membership wal.Membership
}

// fakeFirst is where the fakes' logs begin.
const fakeFirst wal.LSN = 0x1000000

// newCluster starts n fakes; they end with tb or, if that is nil, with stop.
func newCluster(tb testing.TB, n int) *cluster {
	c := &cluster{timeline: wal.TimelineID{Tenant: "test", Timeline: "main"}, creation: wal.CreationID{0: 7, 15: byte(n)}, membership: wal.Membership{Generation: 1}}
	for i := range n {
		c.membership.Members = append(c.membership.Members, wal.Member{ID: wal.NodeID(i + 1), Addr: fmt.Sprintf("node%d", i+1)})
	}
	for i := range n {
		x := &node{cluster: c, id: wal.NodeID(i + 1), addr: c.membership.Members[i].Addr, requestBytesMax: wal.RequestBytesMax, windowBytes: 64 << 20}
		x.state = wal.State{Creation: c.creation, FirstLSN: fakeFirst, Membership: c.membership, Commit: fakeFirst, Horizon: fakeFirst}
		x.start()
		c.nodes = append(c.nodes, x)
	}
	if tb != nil {
		tb.Cleanup(c.stop)
	}
	return c
}

func (c *cluster) stop() {
	for _, n := range c.nodes {
		n.stop()
	}
}

// config is what a proposer of this cluster begins with.
func (c *cluster) config() proposer.Config {
	cfg := proposer.Config{
		Timeline: c.timeline,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			for _, n := range c.nodes {
				if n.addr == addr {
					return n.dial(ctx)
				}
			}
			return nil, fmt.Errorf("no node at %s", addr)
		})},
	}
	for _, n := range c.nodes {
		cfg.Acceptors = append(cfg.Acceptors, n.addr)
	}
	return cfg
}

// node is one fake acceptor.
type node struct {
	holdfastv1.UnimplementedAcceptorServiceServer
	holdfastv1.UnimplementedAdminServiceServer
	cluster *cluster
	id      wal.NodeID
	addr    string

	requestBytesMax, windowBytes int

	mu       sync.Mutex
	listener *bufconn.Listener // nil while stopped
	server   *grpc.Server

	acceptor *consensus.Acceptor
	state    wal.State
	log      []byte // from fakeFirst on; always flushed
	sink     bool   // for benchmarks: bytes are counted and not kept
	sunk     int
	streams  map[consensus.StreamID]*fakeStream
	lastID   consensus.StreamID
	change   chan struct{} // closed and replaced when anything changes

	// Faults.
	health    wal.Health
	syncDelay time.Duration
	hung      bool   // takes nothing from its streams
	full      bool   // refuses appends for lack of space
	rotten    bool   // answers reads with DATA_LOSS
	missing   bool   // does not have the timeline
	requests  int    // appends with data
	readBytes uint64 // served by Read
}

type fakeStream struct {
	grpc.BidiStreamingServer[holdfastv1.ProposerMessage, holdfastv1.AcceptorMessage]
	ended chan error
}

func (n *node) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listener = bufconn.Listen(1 << 20)
	n.server = grpc.NewServer(proto.ServerOptions()...)
	n.acceptor = consensus.NewAcceptor(consensus.AcceptorConfig{
		Node: n.id, Timeline: n.cluster.timeline, RequestBytesMax: n.requestBytesMax, WindowBytes: n.windowBytes,
	}, n.state, n.end(), n.health)
	n.streams = map[consensus.StreamID]*fakeStream{}
	n.change = make(chan struct{})
	holdfastv1.RegisterAcceptorServiceServer(n.server, n)
	holdfastv1.RegisterAdminServiceServer(n.server, n)
	server, listener := n.server, n.listener
	go server.Serve(listener)
}

// stop is kill -9: what was flushed stays.
func (n *node) stop() {
	n.mu.Lock()
	server := n.server
	n.listener, n.server = nil, nil
	n.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

// set changes faults and wakes what waits for them.
func (n *node) set(change func(n *node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
	n.changed()
}

func (n *node) changed() {
	close(n.change)
	n.change = make(chan struct{})
}

func (n *node) dial(ctx context.Context) (net.Conn, error) {
	n.mu.Lock()
	l := n.listener
	n.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	return l.DialContext(ctx)
}

func (n *node) end() wal.LSN { return fakeFirst + wal.LSN(len(n.log)+n.sunk) }

// newSink is a cluster that keeps no bytes.
func newSink(tb testing.TB, n int) *cluster {
	c := newCluster(tb, n)
	for _, x := range c.nodes {
		x.set(func(n *node) { n.sink = true })
	}
	return c
}

// bytes returns a copy of the log.
func (n *node) bytes() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]byte(nil), n.log...)
}

func (n *node) status() consensus.Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.acceptor.Status()
}

func (n *node) requestCount() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.requests
}

// Take makes the node a proto.AppendSink.
func (n *node) Take(size int) ([]byte, error) { return make([]byte, size), nil }

func (n *node) Append(stream grpc.BidiStreamingServer[holdfastv1.ProposerMessage, holdfastv1.AcceptorMessage]) error {
	s := &fakeStream{stream, make(chan error, 1)}
	n.mu.Lock()
	n.lastID++
	id := n.lastID
	n.streams[id] = s
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		n.acceptor.Close(id)
		delete(n.streams, id)
		n.mu.Unlock()
	}()
	go func() {
		in := proto.FromProposer{Sink: n}
		for {
			if err := in.Receive(stream); err != nil {
				s.end(err)
				return
			}
			if err := n.await(stream.Context()); err != nil {
				s.end(err)
				return
			}
			m := in.Message()
			if r, ok := in.Append(); ok {
				copied := *r
				m = &copied
			}
			n.step(id, m)
		}
	}()
	return proto.ToStatus(<-s.ended)
}

func (s *fakeStream) end(err error) {
	select {
	case s.ended <- err:
	default:
	}
}

// await plays the hung process and the slow disk.
func (n *node) await(ctx context.Context) error {
	for {
		n.mu.Lock()
		hung, delay, change := n.hung, n.syncDelay, n.change
		n.mu.Unlock()
		if !hung {
			change = nil
			if delay == 0 {
				return nil
			}
		} else {
			delay = time.Hour
		}
		select {
		case <-change:
		case <-time.After(delay):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// step is one turn of the drain loop.
func (n *node) step(id consensus.StreamID, m consensus.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.streams[id] == nil {
		return
	}
	var b consensus.Batch
	if r, ok := m.(*consensus.AppendRequest); ok && n.full && len(r.Data) > 0 {
		n.acceptor.Refuse(id, consensus.ReasonNoSpace, "the disk is full", &b)
	} else {
		if ok && len(r.Data) > 0 {
			n.requests++
		}
		n.acceptor.Step(id, m, &b)
	}
	if b.Save != nil {
		n.state = b.Save.Clone()
		if !n.sink {
			n.log = n.log[:b.SaveEnd-fakeFirst]
		}
	}
	for _, chunk := range b.Appends {
		if n.sink {
			n.sunk += len(chunk.Data)
			continue
		}
		n.log = append(n.log, chunk.Data...)
	}
	n.acceptor.Flushed(&b)
	for _, r := range b.Replies {
		if s := n.streams[r.Stream]; s != nil {
			if err := s.SendMsg(r.Message); err != nil {
				s.end(err)
			}
		}
	}
	for _, e := range b.Ends {
		if s := n.streams[e.Stream]; s != nil {
			delete(n.streams, e.Stream)
			s.end(e.Err)
		}
	}
	n.changed()
}

// Read serves from the byte slice.
func (n *node) Read(r *holdfastv1.ReadRequest, stream grpc.ServerStreamingServer[holdfastv1.ReadResponse]) error {
	at := wal.LSN(r.GetBeginLsn())
	for {
		n.mu.Lock()
		change, end, commit, term := n.change, n.acceptor.Status().Commit, n.acceptor.Status().Commit, n.acceptor.StoredLastTerm()
		var err error
		if p := r.GetRecovery(); p != nil {
			end = n.end()
			if n.acceptor.StoredLastTerm() != wal.Term(p.GetPinnedTerm()) {
				err = proto.ToStatus(&consensus.Error{Reason: proto.ReasonPinnedTerm, Detail: "another term"})
			}
		}
		if n.rotten {
			err = proto.ToStatus(&consensus.Error{Reason: proto.ReasonCorrupt, Detail: "rotten"})
		}
		if e := wal.LSN(r.GetEndLsn()); e != 0 {
			end = min(end, e)
		}
		var data []byte
		if at < end {
			if n.sink {
				data = make([]byte, min(end-at, 100_000))
			} else {
				data = append(data, n.log[at-fakeFirst:min(end, at+100_000)-fakeFirst]...)
			}
			n.readBytes += uint64(len(data))
		}
		n.mu.Unlock()
		if err != nil {
			return err
		}
		if len(data) > 0 {
			if err := stream.Send(&holdfastv1.ReadResponse{BeginLsn: uint64(at), Crc32C: wal.Checksum(data), Term: uint64(term), CommitLsn: uint64(commit), Data: data}); err != nil {
				return err
			}
			at += wal.LSN(len(data))
			continue
		}
		if !r.GetFollow() || r.GetEndLsn() != 0 && at >= wal.LSN(r.GetEndLsn()) {
			return nil
		}
		select {
		case <-change:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func (n *node) GetTimeline(_ context.Context, r *holdfastv1.GetTimelineRequest) (*holdfastv1.GetTimelineResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.missing || r.GetTimeline() != n.cluster.timeline.String() {
		return nil, proto.ToStatus(&consensus.Error{Reason: proto.ReasonNotFound, Detail: "no such timeline"})
	}
	if n.server == nil {
		return nil, status.Error(codes.Unavailable, "stopped")
	}
	st := n.acceptor.Status()
	return &holdfastv1.GetTimelineResponse{Timeline: &holdfastv1.TimelineStatus{
		Timeline: r.GetTimeline(), CreationId: proto.EncodeCreationID(n.state.Creation), NodeId: uint64(n.id),
		Membership: proto.EncodeMembership(n.state.Membership), CommitLsn: uint64(st.Commit), FlushLsn: uint64(st.Flush),
		Health: proto.EncodeHealth(st.Health),
	}}, nil
}
