package acceptor

import (
	"bytes"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestMainPath goes the whole way once: create, greet, vote, elect, append,
// commit, read, status, leave, come back.
func TestMainPath(t *testing.T) {
	disk := vfs.NewMem()
	n := start(t, config(t, disk))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	var want []byte
	for range 200 {
		data := pattern(x.at, 9000)
		want = append(want, data...)
		x.append(data)
	}
	x.append(pattern(x.at, wal.RequestBytesMax))
	want = append(want, pattern(firstLSN+wal.LSN(len(want)), wal.RequestBytesMax)...)
	x.acked(x.at, 0)
	x.commit()

	check := func(n *testNode) {
		t.Helper()
		got, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", CreationId: born[:], BeginLsn: uint64(firstLSN)})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("read %d bytes, %v; expected %d", len(got), err, len(want))
		}
		s := n.status(mainline)
		if wal.LSN(s.FlushLsn) != x.at || wal.LSN(s.CommitLsn) != x.at || s.Term != 1 || s.Health != holdfastv1.Health_HEALTH_OK {
			t.Errorf("status %v", s)
		}
	}
	check(n)
	if s := n.status(mainline); s.GetProposer().GetConnection() == 0 || s.GetLastContactAge() == nil || !s.Opened {
		t.Errorf("status says nothing of the proposer: %v", s)
	}
	got, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN) + 100, EndLsn: uint64(firstLSN) + 50000})
	if err != nil || !bytes.Equal(got, want[100:50000]) {
		t.Errorf("a part: %d bytes, %v", len(got), err)
	}
	n.leave()
	if e := x.ended(); e.Reason != "DRAINING" {
		t.Errorf("the stream ended with %v", e)
	}

	n = start(t, config(t, disk))
	if s := n.status(mainline); s.Opened || wal.LSN(s.FlushLsn) != x.at {
		t.Errorf("a cold timeline: %v", s)
	}
	check(n)
	again := n.lead(mainline, born, 2)
	if again.term != 2 || again.at != x.at {
		t.Errorf("leads in term %d from %v", again.term, again.at)
	}
	again.append([]byte("more"))
	again.acked(again.at, 0)
}

func TestRefusals(t *testing.T) {
	n := start(t, config(t, vfs.NewMem()))
	n.create(mainline, born)
	lead := func() *client { return n.lead(mainline, born, byte(connections.Load())+10) }
	for name, c := range map[string]struct {
		do   func() *client
		want consensus.Reason
	}{
		"no such timeline": {func() *client {
			x := n.dial()
			x.send(hello(wal.TimelineID{Tenant: "t", Timeline: "other"}, born, 1))
			return x
		}, "NOT_FOUND"},
		"another creation": {func() *client {
			x := n.dial()
			x.send(hello(mainline, wal.CreationID{9}, 1))
			return x
		}, consensus.ReasonWrongTimeline},
		"no greeting": {func() *client {
			x := n.dial()
			x.send(&consensus.VoteRequest{Generation: 1, Term: 1})
			return x
		}, consensus.ReasonProtocol},
		"an append first": {func() *client {
			x := n.dial()
			x.append([]byte("x"))
			return x
		}, consensus.ReasonProtocol},
		"no election": {func() *client {
			x, _ := n.greet(mainline, born, 5)
			x.term = 1000
			x.append([]byte("x"))
			return x
		}, consensus.ReasonNotElected},
		"a gap": {func() *client {
			x := lead()
			x.at++
			x.append([]byte("x"))
			return x
		}, consensus.ReasonGap},
		"a rewrite": {func() *client {
			x := lead()
			x.at--
			x.append([]byte("x"))
			return x
		}, consensus.ReasonRewrite},
		"a wrong checksum": {func() *client {
			x := lead()
			x.send(&consensus.AppendRequest{Generation: 1, Term: x.term, Begin: x.at, CRC: 1, Data: []byte("x")})
			return x
		}, consensus.ReasonChecksum},
		"too large": {func() *client {
			x := lead()
			x.append(make([]byte, wal.RequestBytesMax+1))
			return x
		}, consensus.ReasonTooLarge},
		"replaced": {func() *client {
			x, _ := n.greet(mainline, born, 77)
			n.greet(mainline, born, 77)
			return x
		}, consensus.ReasonStaleStream},
	} {
		t.Run(name, func(t *testing.T) {
			if e := c.do().ended(); e.Reason != c.want || e.Detail == "" {
				t.Errorf("got %v, expected %v", e, c.want)
			}
		})
	}
}

func TestHalfClosedStreamGetsItsAnswers(t *testing.T) {
	n := start(t, config(t, vfs.NewMem()))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	x.append(pattern(x.at, 100<<10))
	if err := x.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	x.acked(x.at, 0)
	if _, err := x.next(); err == nil {
		t.Error("the stream goes on")
	}
}
