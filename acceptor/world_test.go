package acceptor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const firstLSN = wal.LSN(0x1000)

var (
	mainline = wal.TimelineID{Tenant: "t", Timeline: "main"}
	alone    = wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1}}}
	born     = wal.CreationID{7}
)

// testNode is a node on some file system, and a client of it.
type testNode struct {
	*Node
	t      *testing.T
	conn   *grpc.ClientConn
	admin  holdfastv1.AdminServiceClient
	reads  holdfastv1.AcceptorServiceClient
	served chan error
	left   atomic.Bool
}

// config is for small disks.
func config(t *testing.T, fsys vfs.FS) Config {
	t.Helper()
	m, err := metrics.NewAcceptor(prometheus.NewRegistry(), Reasons())
	if err != nil {
		t.Fatal(err)
	}
	return Config{NodeID: 1, DataDir: "data", FS: fsys, Metrics: m, SpareSegments: -1, SegmentBytes: 2 << 20, ManualRepair: true}
}

// start runs a node until the test ends.
func start(t *testing.T, c Config, dial ...grpc.DialOption) *testNode {
	t.Helper()
	node, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l := bufconn.Listen(1 << 20)
	n := &testNode{Node: node, t: t, served: make(chan error, 1)}
	go func() { n.served <- node.Serve(l) }()
	options := append(proto.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	n.conn, err = grpc.NewClient("passthrough:node", append(options, dial...)...)
	if err != nil {
		t.Fatal(err)
	}
	n.admin, n.reads = holdfastv1.NewAdminServiceClient(n.conn), holdfastv1.NewAcceptorServiceClient(n.conn)
	t.Cleanup(n.leave)
	return n
}

// leave shuts the node down.
func (n *testNode) leave() {
	if n.left.Swap(true) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := n.Shutdown(ctx); err != nil {
		n.t.Errorf("shutdown: %v", err)
	}
	if err := <-n.served; err != nil {
		n.t.Errorf("serve: %v", err)
	}
	_ = n.conn.Close()
}

// create makes a timeline of which this node is the only member.
func (n *testNode) create(id wal.TimelineID, c wal.CreationID) {
	n.t.Helper()
	if _, err := n.admin.CreateTimeline(n.t.Context(), createRequest(id, c)); err != nil {
		n.t.Fatal(err)
	}
}

func createRequest(id wal.TimelineID, c wal.CreationID) *holdfastv1.CreateTimelineRequest {
	return &holdfastv1.CreateTimelineRequest{
		Timeline: id.String(), CreationId: proto.EncodeCreationID(c), FirstLsn: uint64(firstLSN), Membership: proto.EncodeMembership(alone),
	}
}

func (n *testNode) status(id wal.TimelineID) *holdfastv1.TimelineStatus {
	n.t.Helper()
	r, err := n.admin.GetTimeline(n.t.Context(), &holdfastv1.GetTimelineRequest{Timeline: id.String()})
	if err != nil {
		n.t.Fatal(err)
	}
	return r.GetTimeline()
}

// client is a proposer's stream, spoken by hand.
type client struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[holdfastv1.ProposerMessage, holdfastv1.AcceptorMessage]
	in     proto.FromAcceptor
	cancel context.CancelFunc
	term   wal.Term
	at     wal.LSN // end of what was sent
	known  wal.LSN // what was said to be committed
}

var connections atomic.Uint64

// dial opens a stream and sends nothing.
func (n *testNode) dial() *client {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.t.Context())
	stream, err := n.reads.Append(ctx)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(cancel)
	return &client{t: n.t, stream: stream, cancel: cancel}
}

func hello(id wal.TimelineID, c wal.CreationID, who byte) *consensus.Greeting {
	return &consensus.Greeting{
		Version: consensus.Version, Timeline: id, Creation: c, Proposer: wal.ProposerID{who},
		Connection: connections.Add(1), Membership: alone,
	}
}

// greet opens a stream to a timeline.
func (n *testNode) greet(id wal.TimelineID, c wal.CreationID, who byte) (*client, *consensus.AcceptorGreeting) {
	n.t.Helper()
	x := n.dial()
	x.send(hello(id, c, who))
	return x, x.receive().(*consensus.AcceptorGreeting)
}

// lead opens a stream and wins the next term.
func (n *testNode) lead(id wal.TimelineID, c wal.CreationID, who byte) *client {
	n.t.Helper()
	x, g := n.greet(id, c, who)
	x.term = g.Term + 1
	x.send(&consensus.VoteRequest{Generation: 1, Term: x.term})
	v := x.receive().(*consensus.VoteResponse)
	if !v.Granted {
		n.t.Fatalf("no vote in term %d: %+v", x.term, v)
	}
	x.at = v.Flush
	x.send(&consensus.Elected{Generation: 1, Term: x.term, Resume: v.Flush, History: v.History.Extend(x.term, v.Flush)})
	return x
}

func (x *client) send(m consensus.Message) {
	x.t.Helper()
	if err := x.stream.SendMsg(m); err != nil && err != io.EOF {
		x.t.Fatalf("send %T: %v", m, err)
	}
}

func (x *client) receive() consensus.Message {
	x.t.Helper()
	m, err := x.next()
	if err != nil {
		x.t.Fatalf("receive: %v", err)
	}
	return m
}

func (x *client) next() (consensus.Message, error) {
	if err := x.in.Receive(x.stream); err != nil {
		return nil, err
	}
	return x.in.Message(), nil
}

// append sends data and does not wait.
func (x *client) append(data []byte) {
	x.t.Helper()
	x.send(&consensus.AppendRequest{Generation: 1, Term: x.term, Begin: x.at, Commit: x.known, CRC: wal.Checksum(data), Data: data})
	x.at += wal.LSN(len(data))
}

// commit tells the acceptor that all it has is committed.
func (x *client) commit() {
	x.t.Helper()
	x.known = x.at
	x.send(&consensus.AppendRequest{Generation: 1, Term: x.term, Commit: x.at, Horizon: x.at})
	x.acked(x.at, x.at)
}

// acked waits until flush and commit are acknowledged.
func (x *client) acked(flush, commit wal.LSN) {
	x.t.Helper()
	for {
		r, ok := x.receive().(*consensus.AppendResponse)
		if !ok {
			x.t.Fatalf("an answer that is no acknowledgement")
		}
		if r.Flush >= flush && r.Commit >= commit {
			return
		}
	}
}

// ended waits for the stream's end and returns why.
func (x *client) ended() *consensus.Error {
	x.t.Helper()
	for {
		if _, err := x.next(); err != nil {
			e := proto.FromStatus(err)
			if e == nil {
				x.t.Fatalf("the stream ended without a reason: %v", err)
			}
			return e
		}
	}
}

func reason(err error) consensus.Reason {
	if e := proto.FromStatus(err); e != nil {
		return e.Reason
	}
	return ""
}

// read reads all that a request asks for.
func (n *testNode) read(in *holdfastv1.ReadRequest) ([]byte, error) {
	ctx, cancel := context.WithCancel(n.t.Context())
	defer cancel()
	stream, err := n.reads.Read(ctx, in)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return out.Bytes(), err
		}
		if wal.Checksum(r.GetData()) != r.GetCrc32C() {
			n.t.Error("data without its checksum")
		}
		out.Write(r.GetData())
	}
}

// pattern is n bytes that say where they belong.
func pattern(at wal.LSN, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		x := uint64(at) + uint64(i)
		b[i] = byte(x ^ x>>8 ^ x>>16)
	}
	return b
}

// eventually waits for something that happens beside the calls.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}
