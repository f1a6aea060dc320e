package acceptor

import (
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc"
)

// TestShutdownDoesNotWaitForClients: one that does not read its answers while
// its inbox is full, and a follower, do not keep a node. That leave succeeds says
// that everything came to its end in time.
func TestShutdownDoesNotWaitForClients(t *testing.T) {
	c := config(t, vfs.NewMem())
	c.InboxBytes = 1 << 20
	n := start(t, c, grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
	n.create(mainline, born)
	follower, err := n.reads.Read(t.Context(), &holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN), Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	x, g := n.greet(mainline, born, 1)
	term := g.Term + 1
	x.send(&consensus.VoteRequest{Generation: 1, Term: term})
	x.send(&consensus.Elected{
		Generation: 1, Term: term, Resume: firstLSN, History: wal.History{{Term: term, LSN: firstLSN}},
		Properties: make([]byte, wal.PropertiesBytesMax),
	})
	for range 20 {
		x.send(&consensus.VoteRequest{Generation: 1, Term: term}) // long answers, which nobody reads
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for x.stream.SendMsg(&consensus.AppendRequest{Generation: 1, Term: term}) == nil {
		}
	}()
	eventually(t, "a full inbox", func() bool { return n.status(mainline).InboxBytes > 1<<20-200 })
	n.leave()
	for err == nil {
		_, err = follower.Recv()
	}
	<-done
}

func TestANodeThatIsDrainingTakesNothingNew(t *testing.T) {
	n := start(t, config(t, vfs.NewMem()))
	n.create(mainline, born)
	n.draining.Store(true)
	defer n.draining.Store(false)
	x := n.dial()
	if e := x.ended(); e.Reason != "DRAINING" {
		t.Errorf("a stream: %v", e)
	}
	if len(n.NotReady()) != 1 {
		t.Errorf("ready while draining")
	}
	if _, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main"}); reason(err) != "DRAINING" {
		t.Errorf("a read of a cold timeline: %v", err)
	}
}
