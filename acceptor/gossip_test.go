package acceptor

import (
	"net"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// pair is two nodes that are members of the same timelines and reach each other.
func pair(t *testing.T, disks [2]vfs.FS) [2]*testNode {
	t.Helper()
	both := wal.Membership{Generation: 1}
	var nodes [2]*testNode
	for i := range nodes {
		c := config(t, disks[i])
		c.NodeID = wal.NodeID(i + 1)
		n := start(t, c)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error)
		go func() { served <- n.Serve(l) }()
		t.Cleanup(func() {
			n.leave()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
		nodes[i] = n
		both.Members = append(both.Members, wal.Member{ID: c.NodeID, Addr: l.Addr().String()})
	}
	old := alone
	alone = both
	t.Cleanup(func() { alone = old })
	return nodes
}

// TestPeersTellEachOtherWhatIsCommitted: an acceptor that has missed a
// proposer's last word hears it from the other (A7).
func TestPeersTellEachOtherWhatIsCommitted(t *testing.T) {
	nodes := pair(t, [2]vfs.FS{vfs.NewMem(), vfs.NewMem()})
	var clients []*client
	for _, n := range nodes {
		n.create(mainline, born)
		x := n.lead(mainline, born, 1)
		x.append(pattern(x.at, 1000))
		x.acked(x.at, 0)
		clients = append(clients, x)
	}
	clients[0].commit()
	end := uint64(clients[0].at)
	if s := nodes[1].status(mainline); s.CommitLsn == end {
		t.Fatal("the other knows already")
	}
	nodes[0].gossip.round(t.Context(), 1)
	eventually(t, "the commit LSN arrives", func() bool { return nodes[1].status(mainline).CommitLsn == end })
	if peers := nodes[0].State().Peers; len(peers) != 1 || peers[0].Node != 2 {
		t.Errorf("peers %+v", peers)
	}

	// Of another term, or another creation, nothing is taken.
	y := nodes[1].lead(mainline, born, 2)
	y.append(pattern(y.at, 10))
	y.acked(y.at, 0)
	for _, p := range []*holdfastv1.PeerTimeline{
		{Timeline: "t/main", CreationId: born[:], LastLogTerm: 1, FlushLsn: end + 10, CommitLsn: end + 10, Health: holdfastv1.Health_HEALTH_OK},
		{Timeline: "t/main", CreationId: []byte("0123456789abcdef"), LastLogTerm: 2, FlushLsn: end + 10, CommitLsn: end + 10, Health: holdfastv1.Health_HEALTH_OK},
		{Timeline: "t/main", CreationId: born[:], LastLogTerm: 2, FlushLsn: end + 10, CommitLsn: end + 10, Health: holdfastv1.Health_HEALTH_QUARANTINED},
	} {
		if _, err := nodes[1].admin.PeerStatus(t.Context(), &holdfastv1.PeerStatusRequest{NodeId: 1, Timelines: []*holdfastv1.PeerTimeline{p}}); err != nil {
			t.Error(err)
		}
	}
	y.send(&consensus.AppendRequest{Generation: 1, Term: y.term})
	y.acked(y.at, 0)
	if s := nodes[1].status(mainline); s.CommitLsn != end {
		t.Errorf("commit is %v, expected %v", wal.LSN(s.CommitLsn), wal.LSN(end))
	}
}
