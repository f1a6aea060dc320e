package consensus

import (
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// What comes over the wire may be anything. Whatever is said to them, in
// whatever order, the machines do not panic, keep their positions in order,
// and never go back on what they have said.

// bytesOf reads small numbers from fuzzed input, 0 when it is used up.
type bytesOf struct{ b []byte }

func (f *bytesOf) next() uint64 {
	if len(f.b) == 0 {
		return 0
	}
	x := f.b[0]
	f.b = f.b[1:]
	switch {
	case x == 0xFF:
		return ^uint64(0)
	case x == 0xFE:
		return 1 << 63
	}
	return uint64(x)
}

func (f *bytesOf) history() (h wal.History) {
	for range f.next() % 5 {
		h = append(h, wal.Position{Term: wal.Term(f.next()), LSN: wal.LSN(f.next())})
	}
	return h
}

func FuzzAcceptorMessages(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 1, 1, 2, 1, 1, 1, 0, 1, 1, 0, 3, 1, 1, 0, 0, 0, 3, 4, 1, 1, 0, 3, 3, 0, 2})
	f.Add([]byte{0, 1, 1, 0xFF, 1, 1, 0xFF, 2, 1, 0xFE, 0xFF, 3, 1, 0xFF, 0xFF, 0xFF, 0xFF, 9})
	f.Fuzz(func(t *testing.T, in []byte) {
		b := &bytesOf{in}
		st := wal.State{Creation: wal.CreationID{1}, FirstLSN: 0, Membership: three()}
		a := newNode(1, st, 0)
		var batch Batch
		before := a.Status()
		for len(b.b) > 0 {
			stream := StreamID(1 + b.next()%3)
			var m Message
			switch b.next() % 8 {
			case 0:
				g := &Greeting{Version: Version, Timeline: clusterTimeline, Creation: wal.CreationID{1}, Proposer: writerID(byte(1 + b.next()%2)), Connection: b.next(), SystemID: b.next() % 3, Membership: three()}
				g.Membership.Generation = 1 + b.next()%3
				m = g
			case 1:
				m = &VoteRequest{Generation: 1 + b.next()%2, Term: wal.Term(b.next())}
			case 2:
				m = &Elected{Generation: 1, Term: wal.Term(b.next()), Resume: wal.LSN(b.next()), History: b.history(), SystemID: b.next() % 3}
			case 3, 4:
				r := &AppendRequest{Generation: 1, Term: wal.Term(b.next()), Begin: wal.LSN(b.next()), Commit: wal.LSN(b.next()), Horizon: wal.LSN(b.next())}
				r.Data = make([]byte, b.next()%8)
				r.CRC = wal.Checksum(r.Data)
				m = r
			case 5:
				m = &PeerCommit{Creation: wal.CreationID{1}, LastLogTerm: wal.Term(b.next()), Commit: wal.LSN(b.next())}
			case 6:
				a.Close(stream)
				continue
			case 7:
				m = &VoteResponse{}
			}
			for !a.Step(stream, m, &batch) {
				if batch.Empty() {
					t.Fatalf("an empty batch refuses %T", m)
				}
				perform(t, a, &batch)
			}
			if b.next()%2 == 0 {
				perform(t, a, &batch)
				s := a.Status()
				if s.Horizon > s.Commit || s.Commit > s.Flush || s.Flush != s.Write || s.Term < before.Term || s.Commit < before.Commit || s.Flush < before.Commit {
					t.Fatalf("%+v, then %+v", before, s)
				}
				if err := a.State().History.Validate(); err != nil {
					t.Fatal(err)
				}
				before = s
			}
		}
	})
}

// perform is what the loop does, with a disk that always works.
func perform(t *testing.T, a *Acceptor, b *Batch) {
	t.Helper()
	if b.Save != nil && len(b.Appends) > 0 {
		t.Fatal("a batch has a state frame and data")
	}
	end := a.flush
	for _, c := range b.Appends {
		if c.Begin != end || c.End() < c.Begin {
			t.Fatalf("a chunk at %v, the log ends at %v", c.Begin, end)
		}
		end = c.End()
	}
	a.Flushed(b)
	b.Reset()
}

func FuzzProposerMessages(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 0, 0, 1, 0, 2, 0, 1, 1, 5, 5, 0, 0, 2, 1, 1, 1, 5, 5, 0, 0, 3, 0, 1, 5, 3, 1, 1, 5})
	f.Fuzz(func(t *testing.T, in []byte) {
		b := &bytesOf{in}
		p := NewProposer(ProposerConfig{ID: writerID(1), Timeline: clusterTimeline, Creation: wal.CreationID{1}, Membership: three(), Decide: len(in)%2 == 0, Jitter: func(int) int { return 0 }})
		before := p.Status()
		for len(b.b) > 0 {
			node := wal.NodeID(1 + b.next()%4)
			connection := uint64(0)
			if x := p.peer(node); x != nil {
				connection = x.connection
			}
			switch b.next() % 9 {
			case 0:
				p.Connect(node)
			case 1:
				p.Step(node, connection, &AcceptorGreeting{Node: node, Creation: wal.CreationID{1}, Term: wal.Term(b.next())})
			case 2, 3:
				p.Step(node, connection, &VoteResponse{Term: wal.Term(b.next()), Granted: b.next()%2 == 0, Flush: wal.LSN(b.next()), Commit: wal.LSN(b.next()), Horizon: wal.LSN(b.next()), History: b.history()})
			case 4:
				p.Step(node, connection, &AppendResponse{Term: wal.Term(b.next()), Flush: wal.LSN(b.next())})
			case 5:
				for range b.next() % 128 {
					p.Tick()
				}
			case 6:
				p.Disconnect(node, connection)
			case 7:
				if p.Status().Phase == Leading {
					p.Handed(p.Status().Tail + wal.LSN(b.next()%16))
				}
			case 8:
				if e := p.Election(); p.Status().Phase == Deciding {
					_ = p.Lead(Decision{Start: min(e.Start, e.MayBeCommitted)}) // it may be refused: the answers may be nonsense
				}
			}
			for _, o := range p.Outputs() {
				if e, ok := o.Message.(*Elected); ok && (e.History.Validate() != nil || e.History.LastTerm() != e.Term) {
					t.Fatalf("term %d is announced with %v", e.Term, e.History)
				}
			}
			s := p.Status()
			if s.Term < before.Term || s.Commit < before.Commit || s.Horizon < before.Horizon || s.Horizon > s.Commit || s.Phase == Leading && s.Commit > s.Tail || s.Phase != Stopped && before.Phase == Stopped {
				t.Fatalf("%+v, then %+v", before, s)
			}
			before = s
		}
	})
}
