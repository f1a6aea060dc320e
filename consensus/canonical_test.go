package consensus

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// The canonical form of a cluster: two clusters that differ only in the names
// of nodes or writers, in connection numbers, or in what can no longer matter
// have the same one. Left out: ticks and attempts (they say when, never what),
// what a proposer remembers of a term that it has given up, and who the donor
// was (of equal logs it is the lowest node id, which renaming does not keep;
// it decides when a recovery is given up, and that may happen at any time here).
// TestMergedStatesBehaveAlike checks the claim.

type canon struct {
	c     *cluster
	idle  func(*writer) bool // can do nothing more within bounds
	rank  []byte             // by writer id: its name in this ordering of the writers
	b     []byte
	spent [3]int // crashes, losses and restarts so far
}

func (e *canon) num(n uint64)  { e.b = append(e.b, byte(n)) }
func (e *canon) lsn(l wal.LSN) { e.num(uint64(l)) }
func (e *canon) bool(v bool)   { e.num(uint64(b2i(v))) }

// only adds l if it means something.
func (e *canon) only(means bool, l wal.LSN) {
	if e.bool(means); means {
		e.lsn(l)
	}
}

func (e *canon) who(id byte) { e.b = append(e.b, e.rank[id]) }
func (e *canon) history(h []wal.Position) {
	e.num(uint64(len(h)))
	for _, p := range h {
		e.num(uint64(p.Term))
		e.lsn(p.LSN)
	}
}

func (e *canon) log(s string) {
	e.num(uint64(len(s)))
	for i := range len(s) {
		e.who(s[i])
	}
}

func b2i(v bool) int {
	if v {
		return 1
	}
	return 0
}

func (e *canon) message(m Message) {
	switch m := m.(type) {
	case *Greeting:
		e.num(1)
	case *VoteRequest:
		e.num(2)
		e.num(uint64(m.Term))
	case *Elected:
		e.num(3)
		e.num(uint64(m.Term))
		e.lsn(m.Resume)
		e.history(m.History)
	case *AppendRequest:
		e.num(4)
		e.num(uint64(m.Term))
		e.lsn(m.Begin)
		e.lsn(m.Commit)
		e.lsn(m.Horizon)
		e.log(string(m.Data))
	case *AcceptorGreeting:
		e.num(5)
		e.num(uint64(m.Term))
	case *VoteResponse:
		e.num(6)
		e.vote(m)
	case *AppendResponse:
		e.num(7)
		e.num(uint64(m.Term))
		e.lsn(m.Flush)
		e.lsn(m.Commit)
	}
}

func (e *canon) vote(m *VoteResponse) {
	e.num(uint64(m.Term))
	e.bool(m.Granted)
	e.lsn(m.Flush)
	e.lsn(m.Commit)
	e.lsn(m.Horizon)
	e.history(m.History)
}

func (e *canon) acceptor(n *node) {
	e.num(uint64(n.state.Term))
	e.who(n.state.VotedFor[0])
	e.history(n.state.History)
	e.lsn(n.state.Commit)
	e.lsn(n.state.Horizon)
	e.lsn(n.commit)
	e.lsn(n.horizon)
	e.lsn(n.flush)
	e.num(uint64(n.health))
	e.log(n.log)
}

func (e *canon) proposer(w *writer) {
	if e.idle(w) {
		e.num(uint64(Stopped))
		return
	}
	e.num(uint64(w.phase))
	e.num(uint64(w.term))
	e.num(uint64(w.seenTerm))
	e.bool(w.handedOut)
	e.lsn(w.commit)
	if !e.c.noHorizon {
		e.lsn(w.horizon)
	}
	for _, t := range w.won {
		e.num(uint64(t))
	}
	if w.handedOut {
		e.lsn(w.base)
		e.log(w.window)
	}
	if w.phase == Recovering || w.phase == Leading || w.phase == Deciding {
		e.lsn(w.start)
		e.lsn(w.tail)
		e.history(w.history)
		if !e.c.noHorizon {
			e.lsn(w.election.Horizon)
		}
		e.log(w.ghost)
	}
}

// link is what writer w and node n have in common.
func (e *canon) link(w, n int) {
	x := e.c.writers[w]
	p := x.peer(e.c.nodes[n].config.Node)
	if e.idle(x) {
		return
	}
	if x.phase != Stopped {
		e.bool(p.connected)
		e.bool(p.greeted)
		switch x.phase {
		case Probing:
			e.bool(p.probed)
		case Campaigning, Deciding:
			e.bool(p.voted)
			if p.voted {
				e.vote(p.vote)
				e.log(x.votes[n])
			}
		case Recovering, Leading:
			e.bool(p.vote != nil)
			e.bool(p.adopted)
			e.only(p.elected, p.resume)
			next := p.resume
			if x.sent[n].connection == p.connection {
				next = x.sent[n].next
			}
			if e.only(p.elected, next); !e.c.noHorizon {
				e.only(p.heard, p.divergence)
			}
			e.only(p.stored, p.acked)
			e.lsn(x.truth[n])
		}
	}
	newest := e.c.nodes[n].newest(x.config.ID)
	for i := range e.c.conns {
		k := &e.c.conns[i]
		if k.writer != w || k.node != n {
			continue
		}
		e.num(1)
		e.bool(k.atWriter)
		e.bool(k.atNode)
		e.bool(newest != nil && newest.connection >= k.number)
		e.bool(e.c.nodes[n].session(k.stream) != nil)
		for _, m := range k.up {
			e.message(m.Message)
		}
		e.num(9)
		for _, m := range k.down {
			e.message(m.Message)
			e.log(m.log)
		}
		e.num(10)
	}
}

type stateKey [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// scratch is reused between calls by one worker.
type scratch struct {
	whole, best []byte
	e           canon
	blocks      [5][]byte
}

func (s *scratch) key(p *point, b *bounds) stateKey {
	c := p.cluster
	s.e.idle, s.e.spent = b.idle, p.spent
	orders := [][]int{{0}}
	if len(c.writers) == 2 {
		orders = [][]int{{0, 1}, {1, 0}}
	}
	s.e.c = c
	for i, order := range orders {
		s.whole = s.encode(c, order, s.whole[:0])
		if i == 0 || bytes.Compare(s.whole, s.best) < 0 {
			s.whole, s.best = s.best, s.whole
		}
	}
	return stateKey{maphash.Bytes(seeds[0], s.best), maphash.Bytes(seeds[1], s.best)}
}

func (s *scratch) encode(c *cluster, order []int, out []byte) []byte {
	e := &s.e
	e.rank = e.rank[:0]
	for id := range c.writerN + 1 {
		e.rank = append(e.rank, 100+id) // instances that are gone keep their names
	}
	e.rank[0] = 0
	for i, w := range order {
		e.rank[c.writers[w].id] = byte(i + 1)
	}
	blocks := s.blocks[:len(c.nodes)]
	for n := range blocks {
		e.b = blocks[n][:0]
		e.acceptor(c.nodes[n])
		for _, w := range order {
			e.link(w, n)
		}
		blocks[n] = e.b
	}
	if len(c.membership.NewMembers) == 0 {
		slices.SortFunc(blocks, bytes.Compare)
	}
	e.b = append(out, byte(e.spent[0]), byte(e.spent[1]), byte(e.spent[2]))
	for _, w := range order {
		e.proposer(c.writers[w])
	}
	for _, b := range blocks {
		e.num(uint64(len(b)))
		e.b = append(e.b, b...)
	}
	for _, id := range c.won {
		e.who(id)
	}
	e.num(0xFF)
	e.log(c.committed)
	for _, t := range c.committedTerm {
		e.num(uint64(t))
	}
	return e.b
}
