package acceptor

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// follow opens a Read and returns a function that reads n more bytes.
func (n *testNode) follow(in *holdfastv1.ReadRequest) (grpc.ServerStreamingClient[holdfastv1.ReadResponse], func(int) []byte) {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.t.Context())
	n.t.Cleanup(cancel)
	stream, err := n.reads.Read(ctx, in)
	if err != nil {
		n.t.Fatal(err)
	}
	return stream, func(want int) (out []byte) {
		n.t.Helper()
		for len(out) < want {
			r, err := stream.Recv()
			if err != nil {
				n.t.Fatalf("after %d of %d bytes: %v", len(out), want, err)
			}
			out = append(out, r.GetData()...)
		}
		return out
	}
}

func TestOnlyCommittedBytesAreRead(t *testing.T) {
	n := start(t, config(t, vfs.NewMem()))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	first := pattern(x.at, 1000)
	x.append(first)
	x.commit()
	second := pattern(x.at, 500)
	x.append(second)
	x.acked(x.at, 0)
	all := &holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN)}
	if got, err := n.read(all); err != nil || !bytes.Equal(got, first) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	_, next := n.follow(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN), Follow: true})
	if got := next(1000); !bytes.Equal(got, first) {
		t.Error("the follower got something else")
	}
	x.commit()
	if got := next(500); !bytes.Equal(got, second) {
		t.Error("the follower got something else after the commit")
	}
	_, upTo := n.follow(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN) + 900, EndLsn: uint64(firstLSN) + 1700, Follow: true})
	if got := upTo(600); !bytes.Equal(got, append(first[900:], second...)) {
		t.Error("the follower with an end got something else")
	}
	third := pattern(x.at, 400)
	x.append(third)
	x.commit()
	if got := upTo(200); !bytes.Equal(got, third[:200]) {
		t.Error("the follower with an end got something else at its end")
	}
	if got, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", CreationId: []byte("0123456789abcdef")}); reason(err) != consensus.ReasonWrongTimeline {
		t.Errorf("another creation: %d bytes, %v", len(got), err)
	}
	if got, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: 5}); reason(err) != proto.ReasonTrimmed || status.Code(err) != codes.OutOfRange {
		t.Errorf("below the first LSN: %d bytes, %v", len(got), err)
	}
}

func TestRecoveryReadsArePinned(t *testing.T) {
	n := start(t, config(t, vfs.NewMem()))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	data := pattern(x.at, 3000)
	x.append(data)
	x.acked(x.at, 0)
	pinned := func(term uint64) *holdfastv1.ReadRequest {
		return &holdfastv1.ReadRequest{Timeline: "t/main", CreationId: born[:], BeginLsn: uint64(firstLSN), Recovery: &holdfastv1.Recovery{PinnedTerm: term}}
	}
	if got, err := n.read(pinned(1)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if got, err := n.read(pinned(2)); reason(err) != proto.ReasonPinnedTerm {
		t.Errorf("another term: %d bytes, %v", len(got), err)
	}
	following := pinned(1)
	following.Follow = true
	stream, next := n.follow(following)
	next(3000)
	// A vote alone changes nothing; an election ends the read.
	y, g := n.greet(mainline, born, 2)
	y.term = g.Term + 1
	y.send(&consensus.VoteRequest{Generation: 1, Term: y.term})
	y.receive()
	if got, err := n.read(pinned(1)); err != nil || len(got) != 3000 {
		t.Errorf("after a vote: %d bytes, %v", len(got), err)
	}
	y.send(&consensus.Elected{Generation: 1, Term: y.term, Resume: firstLSN + 1000, History: wal.History{{Term: 1, LSN: firstLSN}, {Term: y.term, LSN: firstLSN + 1000}}})
	for {
		if _, err := stream.Recv(); err != nil {
			if reason(err) != proto.ReasonPinnedTerm {
				t.Errorf("ended with %v", err)
			}
			break
		}
	}
	if got, err := n.read(pinned(uint64(y.term))); err != nil || !bytes.Equal(got, data[:1000]) {
		t.Errorf("after the truncation: %d bytes, %v", len(got), err)
	}
}

// TestRunsAreOfOneTerm: small frames are joined, but never over the border of a term.
func TestRunsAreOfOneTerm(t *testing.T) {
	n := start(t, config(t, vfs.NewMem()))
	n.create(mainline, born)
	var runs []string
	var last *client
	for who := range byte(3) {
		x := n.lead(mainline, born, who+1)
		for range 100 {
			x.append(pattern(x.at, 100))
		}
		x.acked(x.at, 0)
		x.cancel()
		last = x
	}
	x := n.lead(mainline, born, 9)
	x.append(pattern(last.at, wal.RequestBytesMax))
	x.append(pattern(last.at, 10))
	x.commit()
	stream, err := n.reads.Read(t.Context(), &holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN)})
	if err != nil {
		t.Fatal(err)
	}
	at := uint64(firstLSN)
	for {
		r, err := stream.Recv()
		if err != nil {
			break
		}
		if r.BeginLsn != at || wal.Checksum(r.Data) != r.Crc32C {
			t.Errorf("a run at %d, expected %d", r.BeginLsn, at)
		}
		at += uint64(len(r.Data))
		runs = append(runs, fmt.Sprint(r.Term, ":", len(r.Data)))
	}
	if got := fmt.Sprint(runs); got != fmt.Sprintf("[1:10000 2:10000 3:10000 4:%d 4:10]", wal.RequestBytesMax) {
		t.Errorf("runs %v", got)
	}
}

func TestReadersAreBounded(t *testing.T) {
	c := config(t, vfs.NewMem())
	c.ReadersMax = 1
	n := start(t, c)
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	x.append([]byte("x"))
	x.commit()
	_, next := n.follow(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN), Follow: true})
	next(1)
	if _, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN)}); reason(err) != proto.ReasonBusy || status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one too many: %v", err)
	}
}

func TestHealthService(t *testing.T) {
	n := start(t, config(t, vfs.NewMem()))
	for _, name := range []string{"", "holdfast.v1.AcceptorService"} {
		r, err := healthv1.NewHealthClient(n.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || r.Status != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("service %q: %v, %v", name, r, err)
		}
	}
	r, err := n.admin.GetNode(t.Context(), &holdfastv1.GetNodeRequest{})
	if err != nil || r.NodeId != 1 || !r.Ready || r.Limits.RequestBytesMax != wal.RequestBytesMax || r.DiskFreeBytes == 0 {
		t.Errorf("node %v, %v", r, err)
	}
}
