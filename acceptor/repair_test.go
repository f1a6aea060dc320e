package acceptor

import (
	"bytes"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// repair asks for a repair and returns the last message of it.
func (n *testNode) repair() (*holdfastv1.RepairTimelineResponse, error) {
	stream, err := n.admin.RepairTimeline(n.t.Context(), &holdfastv1.RepairTimelineRequest{Timeline: "t/main", CreationId: born[:]})
	if err != nil {
		return nil, err
	}
	var last *holdfastv1.RepairTimelineResponse
	for {
		r, err := stream.Recv()
		if err != nil {
			if last != nil && last.BytesDone == last.BytesTotal {
				return last, nil
			}
			return last, err
		}
		last = r
	}
}

// rotten is a pair of nodes with the same WAL, the first of which has a flipped
// bit in what is committed and one in what is not.
func rotten(t *testing.T) (nodes [2]*testNode, want []byte) {
	t.Helper()
	disk := vfs.NewMem()
	nodes = pair(t, [2]vfs.FS{disk, vfs.NewMem()})
	for i, n := range nodes {
		n.create(mainline, born)
		x := n.lead(mainline, born, 1)
		want = nil
		for k := range 20 {
			data := pattern(x.at, 40000)
			want = append(want, data...)
			x.append(data)
			x.acked(x.at, 0)
			if k == 9 {
				x.commit()
			}
		}
		x.cancel()
		if i == 0 {
			for _, offset := range []int64{300000, 700000} {
				if err := disk.FlipBit("data/t/main/0000000000000002.seg", offset, 3); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return nodes, want
}

func (n *testNode) quarantined() {
	n.t.Helper()
	if _, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN)}); reason(err) != proto.ReasonCorrupt {
		n.t.Fatalf("the damage is not seen: %v", err)
	}
	eventually(n.t, "quarantine", func() bool { return n.status(mainline).Health == holdfastv1.Health_HEALTH_QUARANTINED })
}

func TestRepair(t *testing.T) {
	nodes, want := rotten(t)
	n := nodes[0]
	if r, err := n.repair(); err != nil || r.BytesTotal != 0 {
		t.Errorf("a healthy copy: %v, %v", r, err)
	}
	n.quarantined()
	before := n.status(mainline)
	r, err := n.repair()
	if err != nil || len(r.Repaired) != 2 || r.FromNodeId != 2 || r.BytesTotal != uint64(len(want)) {
		t.Fatalf("repaired %v, %v", r, err)
	}
	s := n.status(mainline)
	if s.Health != holdfastv1.Health_HEALTH_OK || s.Term != before.Term || !bytes.Equal(s.VotedFor, before.VotedFor) ||
		s.FlushLsn != before.FlushLsn || s.CommitLsn != before.CommitLsn || s.LastLogTerm != before.LastLogTerm {
		t.Errorf("before %v\nafter %v", before, s)
	}
	got, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN), Recovery: &holdfastv1.Recovery{PinnedTerm: 1}})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	x := n.lead(mainline, born, 2)
	x.append([]byte("goes on"))
	x.acked(x.at, 0)
}

// TestOnlyBytesOfTheSameTermRepair: what is not committed is taken from a peer
// only if it was written in the very term that wrote it here.
func TestOnlyBytesOfTheSameTermRepair(t *testing.T) {
	nodes, _ := rotten(t)
	cut := nodes[1].status(mainline)
	y, g := nodes[1].greet(mainline, born, 9)
	y.term, y.at = g.Term+1, wal.LSN(cut.CommitLsn)
	y.send(&consensus.VoteRequest{Generation: 1, Term: y.term})
	y.receive()
	y.send(&consensus.Elected{Generation: 1, Term: y.term, Resume: y.at, History: wal.History{{Term: 1, LSN: firstLSN}, {Term: y.term, LSN: y.at}}})
	for range 10 {
		y.append(make([]byte, 40000))
	}
	y.acked(y.at, 0)

	nodes[0].quarantined()
	if r, err := nodes[0].repair(); reason(err) != proto.ReasonCorrupt {
		t.Fatalf("repaired from another term's bytes: %v, %v", r, err)
	}
	if s := nodes[0].status(mainline); s.Health != holdfastv1.Health_HEALTH_QUARANTINED {
		t.Errorf("health %v", s.Health)
	}
}
