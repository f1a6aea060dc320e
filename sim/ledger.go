package sim

import (
	"bytes"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// ledger is the log of one term as its winner has it, and who acknowledged
// how much of it.
type ledger struct {
	term   wal.Term
	writer *writer
	start  wal.LSN
	first  wal.LSN
	log    []byte // from first on
	acked  []wal.LSN
}

func (l *ledger) end() wal.LSN { return l.first + wal.LSN(len(l.log)) }

// handOut notes that the winner's window now is window, from base on.
func (l *ledger) handOut(base wal.LSN, window []byte) {
	l.log = append(l.log, window[l.end()-base:]...)
}

// holds reports whether data at begin is what the ledger has there.
func (l *ledger) holds(begin wal.LSN, data []byte) bool {
	from := int(begin - l.first)
	return from+len(data) <= len(l.log) && bytes.Equal(data, l.log[from:from+len(data)])
}

func (w *world) ledgerOf(term wal.Term) *ledger { return w.ledgers[term] }

// apply changes the books as a durable change changed the disk, and checks the
// change against the log of the term that asked for it.
func (n *node) apply(c change) {
	s := &n.shadow
	if c.save == nil {
		l := n.w.ledgerOf(c.term)
		if c.term < n.promised {
			n.w.fail("3 TermFence", "node %d answered with term %d and stores bytes of term %d", n.id, n.promised, c.term)
		}
		for _, x := range c.chunks {
			if x.Begin != s.end() {
				n.w.fail("12 WriteOrder", "node %d writes at %v, its log ends at %v", n.id, x.Begin, s.end())
				return
			}
			if l == nil || !l.holds(x.Begin, x.Data) {
				n.w.fail("5 LogMatching", "node %d stores bytes at %v in term %d that its winner does not have there", n.id, x.Begin, c.term)
			}
			s.data = append(s.data, x.Data...)
		}
		return
	}
	was := s.state
	if c.end < n.before.Commit {
		n.w.fail("13 TruncateFloor", "node %d is cut to %v, below its commit %v", n.id, c.end, n.before.Commit)
	}
	if err := c.save.History.Validate(); err != nil {
		n.w.fail("6 MonotoneTerms", "node %d: %v", n.id, err)
	}
	if c.save.Term < was.Term || c.save.Term == was.Term && c.save.VotedFor != was.VotedFor && c.save.History.LastTerm() != c.save.Term {
		n.w.fail("2 VoteOnce", "node %d goes from term %d of %v to term %d of %v", n.id, was.Term, was.VotedFor, c.save.Term, c.save.VotedFor)
	}
	if c.save.History.LastTerm() < was.History.LastTerm() {
		n.w.fail("4 HistoryMonotone", "node %d goes from a history of term %d to one of term %d", n.id, was.History.LastTerm(), c.save.History.LastTerm())
	}
	if c.save.Membership.Generation < was.Membership.Generation {
		n.w.fail("15 ConfGen", "node %d goes back a generation", n.id)
	}
	if c.save.Creation != creation() || c.save.FirstLSN != n.w.first {
		n.w.fail("16 IdentityFence", "node %d takes another log's identity", n.id)
	}
	if c.save.History.LastTerm() > was.History.LastTerm() {
		n.adopted(c, was)
	} else if c.end != s.end() {
		n.w.fail("7 DivergencePoint", "node %d is cut from %v to %v with no election", n.id, s.end(), c.end)
	}
	s.cut(c.end)
	s.state = *c.save
}

// adopted checks an election's truncation: what stays is the winner's, and
// nothing goes that the winner has in the same term.
func (n *node) adopted(c change, was wal.State) {
	s, l := &n.shadow, n.w.ledgerOf(c.save.History.LastTerm())
	if l == nil {
		n.w.fail("1 ElectionOnce", "node %d adopts term %d, which nobody won", n.id, c.save.History.LastTerm())
		return
	}
	if c.end > s.end() || c.end > l.end() || !l.holds(s.first, s.at(s.first, c.end)) {
		n.w.fail("7 DivergencePoint", "node %d keeps its log up to %v of %v, the winner of term %d has other bytes there", n.id, c.end, s.end(), l.term)
		return
	}
	if c.end < s.end() && c.end < l.start {
		if t := was.History.Visible(s.end()).TermAt(c.end); t != 0 && t == c.save.History.TermAt(c.end) {
			n.w.fail("7 DivergencePoint", "node %d is cut to %v, but byte %v is of term %d in both logs", n.id, c.end, c.end, t)
		}
	}
}

// answered notes what an acceptor tells a proposer, checks that it survives a
// power cut right now, and returns what its disk holds.
func (w *world) answered(k *conn, m consensus.Message) []byte {
	n := k.node
	switch m := m.(type) {
	case *consensus.VoteResponse:
		if m.Granted {
			// Who has won the term has every adopter's vote, even one that went elsewhere.
			won := w.ledgers[m.Term] != nil && w.ledgers[m.Term].writer == k.writer
			if n.grantIn == m.Term && n.voted != proposerID(k.writer.id) && !won {
				w.fail("2 VoteOnce", "node %d grants term %d twice", n.id, m.Term)
			}
			n.grantIn, n.voted = m.Term, proposerID(k.writer.id)
			w.durable(n, m.Term, n.voted, 0)
		}
		n.promised = max(n.promised, m.Term)
		return n.shadow.data
	case *consensus.AppendResponse:
		n.promised = max(n.promised, m.Term)
		if m.Flush == 0 {
			return nil
		}
		if m.Flush > n.shadow.end() {
			w.fail("11 AckDurable", "node %d acknowledges %v, its disk was told and has synced %v", n.id, m.Flush, n.shadow.end())
		}
		if l := w.ledgerOf(m.Term); l != nil && l.writer == k.writer {
			l.acked[n.index] = max(l.acked[n.index], m.Flush)
		}
		if oneIn(w.r, 8) {
			w.durable(n, m.Term, wal.ProposerID{}, m.Flush)
		}
	}
	return nil
}

// durable opens the worst that a power cut could leave of n's disk now and
// asserts that it still knows what n is about to answer (11).
func (w *world) durable(n *node, term wal.Term, voted wal.ProposerID, flush wal.LSN) {
	if n.damaged {
		return
	}
	disk := n.disk.CrashWorst()
	if oneIn(w.r, 3) {
		disk = n.disk.Crash(w.r)
	}
	log, err := storage.Open(n.config(disk))
	if err != nil {
		w.fail("11 AckDurable", "node %d would not open after a power cut now: %v", n.id, err)
		return
	}
	st, end := log.State(), log.FlushLSN()
	if st.Term < term || voted != (wal.ProposerID{}) && st.VotedFor != voted || end < flush {
		w.fail("11 AckDurable", "node %d answers term %d, vote %v, flush %v; after a power cut now it would know term %d, vote %v, flush %v", n.id, term, voted, flush, st.Term, st.VotedFor, end)
	}
	_ = log.Close(nil)
}

// commit notes that a proposer believes everything below at committed (8, 9, 10).
func (w *world) commit(l *ledger, at wal.LSN) {
	n := 0
	for _, a := range l.acked {
		if a >= at {
			n++
		}
	}
	if n < consensus.Quorum(w.nodes_()) || at < l.start {
		w.fail("10 CommitRule", "proposer %d commits %v in term %d, which began at %v and was acknowledged so far by %d of %d", l.writer.id, at, l.term, l.start, n, w.nodes_())
	}
	end := int(at - w.first)
	if end > len(l.log) || !bytes.Equal(w.committed[:min(end, len(w.committed))], l.log[:min(end, len(w.committed))]) {
		w.fail("9 CommitSafety", "proposer %d commits %v in term %d over other bytes than were committed", l.writer.id, at, l.term)
		return
	}
	if end > len(w.committed) {
		w.committed = append(slices.Clip(w.committed), l.log[len(w.committed):end]...)
		w.commits = append(w.commits, commitment{l.term, at})
	}
}

// commitment says up to where a term had committed.
type commitment struct {
	term wal.Term
	end  wal.LSN
}
