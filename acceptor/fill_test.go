package acceptor

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// couple is two members that hold the same committed WAL.
func couple(t *testing.T) (nodes [2]*testNode, want []byte) {
	t.Helper()
	nodes = pair(t, [2]vfs.FS{vfs.NewMem(), vfs.NewMem()})
	for _, n := range nodes {
		n.create(mainline, born)
	}
	return nodes, more(nodes[:], 20)
}

// more appends to all of nodes, as the next term's winner, and commits.
func more(nodes []*testNode, chunks int) (all []byte) {
	for _, n := range nodes {
		x := n.lead(mainline, born, byte(connections.Load()%200)+1)
		for range chunks {
			x.append(pattern(x.at, 40000))
		}
		x.acked(x.at, 0)
		x.commit()
		x.append([]byte("12345678"))
		x.acked(x.at, 0)
		x.commit()
		x.cancel()
		all, _ = n.committed()
	}
	return all
}

func (n *testNode) committed() ([]byte, error) {
	return n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN), CreationId: born[:]})
}

// restart ends the second node and starts it on another disk, at its old address.
func restart(t *testing.T, n *testNode, disk vfs.FS) *testNode {
	t.Helper()
	addr := alone.Members[1].Addr
	n.leave()
	c := config(t, disk)
	c.NodeID = 2
	again := start(t, c)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- again.Serve(l) }()
	t.Cleanup(func() {
		again.leave()
		<-served
	})
	return again
}

// fill asks for a fill and returns its last message.
func (n *testNode) fill() (*holdfastv1.FillTimelineResponse, error) {
	return recvAll(n, &holdfastv1.FillTimelineRequest{Timeline: "t/main", CreationId: born[:], Membership: proto.EncodeMembership(alone)})
}

// neverVotes asks for a vote in every way there is.
func (n *testNode) neverVotes() {
	n.t.Helper()
	for _, create := range []bool{false, true} {
		if create {
			if _, err := n.admin.CreateTimeline(n.t.Context(), createRequest(mainline, born)); reason(err) != consensus.ReasonLost {
				n.t.Fatalf("a lost copy comes back by creation: %v", err)
			}
		}
		x := n.dial()
		x.send(hello(mainline, born, 9))
		x.send(&consensus.VoteRequest{Generation: 1, Term: 99})
		x.send(&consensus.Elected{Generation: 1, Term: 99, Resume: firstLSN, History: wal.History{{Term: 99, LSN: firstLSN}}})
		for {
			m, err := x.next()
			if err != nil {
				if reason(err) != consensus.ReasonLost {
					n.t.Fatalf("ended with %v", err)
				}
				break
			}
			if g, ok := m.(*consensus.AcceptorGreeting); !ok || g.Health != wal.Lost {
				n.t.Fatalf("a lost copy answers %+v", m)
			}
		}
	}
	if s := n.status(mainline); s.Health != holdfastv1.Health_HEALTH_LOST || s.HealthReason == "" || s.Term != 0 {
		n.t.Fatalf("status %v", s)
	}
	if n.State().Lost != 1 {
		n.t.Fatal("the metrics do not know")
	}
}

// TestMemberWipedAndRestartedUnderItsID is the story of etcd members that came
// back with an empty disk under their old id and voted as if they had never
// acknowledged anything. Here such a node is told by its peers, refuses
// everything, and is filled for reading by a call that can be repeated.
func TestMemberWipedAndRestartedUnderItsID(t *testing.T) {
	nodes, want := couple(t)
	disk := vfs.NewMem()
	n := restart(t, nodes[1], disk)
	eventually(t, "its peer tells", func() bool { _, err := n.committed(); return reason(err) == consensus.ReasonLost })
	eventually(t, "its peer knows", func() bool { p := nodes[0].gossip.states(); return len(p) == 1 && p[0].LostTimelines == 1 })
	n.neverVotes()
	n = restart(t, n, disk)
	eventually(t, "its peer tells again", func() bool { _, err := n.committed(); return reason(err) == consensus.ReasonLost })
	n.neverVotes()

	r, err := n.fill()
	if err != nil || r.FilledLsn != r.CommitLsn || wal.LSN(r.FilledLsn) != firstLSN+wal.LSN(len(want)) {
		t.Fatalf("filled %v, %v", r, err)
	}
	for range 2 {
		if got, err := n.committed(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("read %d of %d bytes, %v", len(got), len(want), err)
		}
		if !n.status(mainline).Filled {
			t.Error("the status does not say that it is filled")
		}
		n.neverVotes()
		if _, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN), Recovery: &holdfastv1.Recovery{PinnedTerm: 1}}); reason(err) != consensus.ReasonLost {
			t.Fatalf("a recovery read of a copy that adopted no term: %v", err)
		}
		n = restart(t, n, disk)
	}

	// Again, and it goes on where it was.
	want = more(nodes[:1], 30)
	before := n.status(mainline).FlushLsn
	if r, err = n.fill(); err != nil || wal.LSN(r.FilledLsn) != firstLSN+wal.LSN(len(want)) || r.FilledLsn == before {
		t.Fatalf("filled %v, %v", r, err)
	}
	if got, err := n.committed(); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %d of %d bytes, %v", len(got), len(want), err)
	}
	n.neverVotes()
	if _, err := n.admin.DeleteTimeline(t.Context(), &holdfastv1.DeleteTimelineRequest{Timeline: "t/main", CreationId: born[:]}); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.ReadDir("data/t/main.filled"); err == nil {
		t.Error("deletion leaves the copy")
	}
}

// TestFillSurvivesPowerCuts cuts the power while a copy is filled. Whatever is
// left never votes, and the same call goes on from it.
func TestFillSurvivesPowerCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	nodes, want := couple(t)
	nodes[1].leave()
	resumed := false
	for at, whole := 0, false; !whole; at += 1 + at/5 {
		mem := vfs.NewMem()
		fault := vfs.NewFault(mem)
		c := config(t, fault)
		c.NodeID = 2
		n := start(t, c)
		fault.CrashAfter(fault.Mutations() + at)
		_, _ = n.fill()
		whole = !fault.Crashed()
		n.abandon()

		mem = mem.Crash(random)
		c = config(t, mem)
		c.NodeID = 2
		n = start(t, c)
		if n.registry.get(mainline) != nil {
			n.neverVotes()
			resumed = resumed || n.status(mainline).FlushLsn > uint64(firstLSN) && !whole
		}
		if r, err := n.fill(); err != nil || wal.LSN(r.FilledLsn) != firstLSN+wal.LSN(len(want)) {
			t.Fatalf("cut after %d: filled %v, %v", at, r, err)
		}
		if got, err := n.committed(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("cut after %d: read %d of %d bytes, %v", at, len(got), len(want), err)
		}
		n.neverVotes()
		n.leave()
	}
	if !resumed {
		t.Error("it never went on from what was there")
	}
}

// TestALostCopyThatLeftTracesIsFilled: the state is gone, most of the segments
// are not. They are kept aside.
func TestALostCopyThatLeftTracesIsFilled(t *testing.T) {
	nodes, want := couple(t)
	disk := nodes[1].cfg.FS.(*vfs.Mem)
	nodes[1].leave()
	entries, err := disk.ReadDir("data/t/main")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries { // every head
		if err := disk.FlipBit(path.Join("data/t/main", e.Name), 600, 1); err != nil {
			t.Fatal(err)
		}
	}
	n := restart(t, nodes[1], disk)
	n.neverVotesButExists()
	if _, err := n.fill(); err != nil {
		t.Fatal(err)
	}
	if got, err := n.committed(); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %d of %d bytes, %v", len(got), len(want), err)
	}
	n = restart(t, n, disk)
	n.neverVotes()
	if _, err := disk.ReadDir("data/t/main.quarantined"); err != nil {
		t.Errorf("the damaged segments are not kept: %v", err)
	}
	// A person who moves the directory back gets no vote for it.
	n.leave()
	if err := disk.Rename("data/t/main.quarantined", "data/t/main"); err != nil {
		t.Fatal(err)
	}
	n = restart(t, n, disk)
	n.neverVotes()
	// And the copy for reading may rot, too.
	if err := disk.FlipBit("data/t/main.filled/0000000000000002.seg", 300000, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := n.committed(); reason(err) != proto.ReasonCorrupt {
		t.Errorf("read with %v", err)
	}
	if _, err := n.fill(); err != nil {
		t.Fatal(err)
	}
	if got, err := n.committed(); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %d of %d bytes, %v", len(got), len(want), err)
	}
}

// neverVotesButExists is neverVotes for a copy that another error is about when it is created.
func (n *testNode) neverVotesButExists() {
	n.t.Helper()
	x := n.dial()
	x.send(hello(mainline, born, 9))
	if e := x.ended(); e.Reason != consensus.ReasonLost {
		n.t.Fatalf("ended with %v", e)
	}
}

func TestOnlyWhatIsLostIsFilled(t *testing.T) {
	nodes, _ := couple(t)
	if _, err := nodes[1].fill(); err == nil || !strings.Contains(err.Error(), "not lost") {
		t.Errorf("a healthy copy: %v", err)
	}
	other := wal.TimelineID{Tenant: "t", Timeline: "other"}
	nodes[0].create(other, born)
	_, err := recvAll(nodes[1], &holdfastv1.FillTimelineRequest{Timeline: other.String(), CreationId: born[:], Membership: proto.EncodeMembership(alone)})
	if err == nil || !strings.Contains(err.Error(), "never been written to") {
		t.Errorf("a creation that is not complete: %v", err)
	}
	if _, err := nodes[1].admin.CreateTimeline(t.Context(), createRequest(other, born)); err != nil {
		t.Errorf("completing it: %v", err)
	}
	another := wal.CreationID{8}
	_, err = recvAll(nodes[1], &holdfastv1.FillTimelineRequest{Timeline: "t/main", CreationId: another[:], Membership: proto.EncodeMembership(alone)})
	if reason(err) != proto.ReasonNotFound || !strings.Contains(err.Error(), "another log") {
		t.Errorf("another creation: %v", err)
	}
}

func recvAll(n *testNode, in *holdfastv1.FillTimelineRequest) (last *holdfastv1.FillTimelineResponse, _ error) {
	stream, err := n.admin.FillTimeline(n.t.Context(), in)
	if err != nil {
		return nil, err
	}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		last = r
	}
}

// TestAPeerAtAnothersAddressIsRefused: what was meant for one node says nothing of another.
func TestAPeerAtAnothersAddressIsRefused(t *testing.T) {
	nodes, _ := couple(t)
	absent := &holdfastv1.PeerTimeline{Timeline: "t/gone", CreationId: born[:], LastLogTerm: 3, Health: holdfastv1.Health_HEALTH_OK}
	in := &holdfastv1.PeerStatusRequest{NodeId: 1, ToNodeId: 3, Timelines: []*holdfastv1.PeerTimeline{absent}}
	if _, err := nodes[1].admin.PeerStatus(t.Context(), in); reason(err) != consensus.ReasonMembership {
		t.Errorf("for node 3: %v", err)
	}
	in.ToNodeId = 2
	r, err := nodes[1].admin.PeerStatus(t.Context(), in)
	if err != nil || len(r.Timelines) != 1 || r.Timelines[0].Health != holdfastv1.Health_HEALTH_LOST {
		t.Errorf("for node 2: %v, %v", r, err)
	}
	// A timeline for which nobody was elected may be about to be created here.
	absent.Timeline, absent.LastLogTerm = "t/new", 0
	if r, err := nodes[1].admin.PeerStatus(t.Context(), in); err != nil || len(r.Timelines) != 0 {
		t.Errorf("a creation under way: %v, %v", r, err)
	}
}

// TestFillGoesOnWhenThereIsRoomAgain: a full disk ends a fill with its reason and nothing else.
func TestFillGoesOnWhenThereIsRoomAgain(t *testing.T) {
	nodes, want := couple(t)
	disk := vfs.NewMem()
	n := restart(t, nodes[1], disk)
	disk.SetCapacity(1 << 20)
	if _, err := n.fill(); reason(err) != consensus.ReasonNoSpace {
		t.Fatalf("filled a disk that is full: %v", err)
	}
	disk.SetCapacity(1 << 40)
	if _, err := n.fill(); err != nil {
		t.Fatal(err)
	}
	if got, err := n.committed(); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %d of %d bytes, %v", len(got), len(want), err)
	}
	n.neverVotes()
}
