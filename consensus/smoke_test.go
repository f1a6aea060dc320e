package consensus

import (
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// world carries messages between one proposer and three acceptors, in order, until nothing is left to say.
type world struct {
	t    *testing.T
	accs map[wal.NodeID]*Acceptor
	sid  StreamID
	strm map[wal.NodeID]StreamID
}

func TestElectionAndCommitOnThreeAcceptors(t *testing.T) {
	m := wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	tl := wal.TimelineID{Tenant: "t", Timeline: "l"}
	st := wal.State{Creation: wal.CreationID{1}, FirstLSN: 100, Membership: m, Commit: 100, Horizon: 100}
	w := &world{t: t, accs: map[wal.NodeID]*Acceptor{}, strm: map[wal.NodeID]StreamID{}}
	for id := wal.NodeID(1); id <= 3; id++ {
		w.accs[id] = NewAcceptor(AcceptorConfig{Node: id, Timeline: tl, RequestBytesMax: 1 << 20}, st, 100, wal.Healthy)
	}
	p := NewProposer(ProposerConfig{ID: wal.ProposerID{9}, Timeline: tl, Creation: st.Creation, Membership: m, Jitter: func(int) int { return 0 }})
	for id := wal.NodeID(1); id <= 3; id++ {
		w.deliver(p, id, p.Connect(id))
	}
	w.drain(p)
	if s := p.Status(); s.Phase != Leading || s.Start != 100 || s.Commit != 100 {
		t.Fatalf("after the campaign: %+v", s)
	}
	p.Handed(105)
	data := []byte("hello")
	for id := wal.NodeID(1); id <= 2; id++ {
		w.deliver(p, id, &AppendRequest{Generation: 1, Term: 1, Begin: 100, Commit: 100, CRC: wal.Checksum(data), Data: data})
	}
	if s := p.Status(); s.Commit != 105 || s.Horizon != 100 {
		t.Fatalf("after two acks: %+v", s)
	}
}

func (w *world) deliver(p *Proposer, id wal.NodeID, m Message) {
	a := w.accs[id]
	if _, ok := m.(*Greeting); ok {
		w.sid++
		w.strm[id] = w.sid
	}
	var b Batch
	if !a.Step(w.strm[id], m, &b) {
		w.t.Fatal("an empty batch refused a message")
	}
	a.Flushed(&b)
	for _, e := range b.Ends {
		w.t.Errorf("node %d ends stream: %v", id, e.Err)
	}
	for _, r := range b.Replies {
		p.Step(id, p.peer(id).connection, r.Message)
	}
}

func (w *world) drain(p *Proposer) {
	for out := p.Outputs(); len(out) > 0; out = p.Outputs() {
		for _, o := range out {
			w.deliver(p, o.Node, o.Message)
		}
	}
}
