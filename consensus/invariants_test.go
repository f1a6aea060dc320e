package consensus

import (
	"strings"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// The invariants of the protocol, numbered as in docs/evidence.md.

// checkNodeStep compares a node before and after one turn or one crash.
func (c *cluster) checkNodeStep(before *Acceptor, oldLog string, n *node, b *Batch) {
	id := n.config.Node
	if n.state.Term < before.state.Term {
		c.fail("2 VoteOnce: node %d went back from term %d to %d", id, before.state.Term, n.state.Term)
	}
	if n.state.Term == before.state.Term && n.state.VotedFor != before.state.VotedFor {
		if t := int(n.state.Term); t >= len(c.won) || writerID(c.won[t]) != n.state.VotedFor {
			c.fail("2 VoteOnce: node %d voted twice in term %d", id, t)
		}
	}
	if len(b.Appends) > 0 && b.Term < before.state.Term {
		c.fail("3 TermFence: node %d answered with term %d and took bytes of term %d", id, before.state.Term, b.Term)
	}
	if n.state.History.LastTerm() < before.state.History.LastTerm() {
		c.fail("4 HistoryMonotone: the history of node %d went back from term %d to %d", id, before.state.History.LastTerm(), n.state.History.LastTerm())
	}
	if n.flush < before.commit {
		c.fail("13 TruncateFloor: node %d ends at %v, below its commit %v", id, n.flush, before.commit)
	}
	if n.horizon > n.commit || n.commit > n.flush || n.flush > n.write || n.write != c.first+wal.LSN(len(n.log)) {
		c.fail("12 WriteOrder: node %d has horizon %v, commit %v, flush %v, write %v, and %d bytes from %v", id, n.horizon, n.commit, n.flush, n.write, len(n.log), c.first)
	}
	if n.state.Membership.Generation < before.state.Membership.Generation {
		c.fail("15 ConfGen: node %d went back a generation", id)
	}
	if err := n.state.History.Validate(); err != nil {
		c.fail("6 MonotoneTerms: node %d: %v", id, err)
	}
	if b.Save != nil && b.Save.History.LastTerm() > before.state.History.LastTerm() {
		c.checkDivergence(before, oldLog, n, b)
	}
	c.checkCommit(n.commit, n.log, "node")
	for _, x := range c.nodes {
		if wal.LSN(len(x.log))+c.first < n.horizon {
			c.fail("17 TrimSafety: node %d may trim to %v, node %d ends at %v", id, n.horizon, x.config.Node, x.write)
		} else if h := int(n.horizon - c.first); h > len(c.committed) || x.log[:h] != c.committed[:h] {
			c.fail("17 TrimSafety: node %d may trim to %v, node %d holds other bytes below", id, n.horizon, x.config.Node)
		}
	}
	c.checkLogs(n)
}

// checkDivergence: what was kept of the log is exactly what the winner has too.
func (c *cluster) checkDivergence(before *Acceptor, oldLog string, n *node, b *Batch) {
	for _, w := range c.writers {
		if w.term != b.Save.Term || w.ID() != b.Save.VotedFor {
			continue
		}
		full, end := w.full(c.first), int(b.SaveEnd-c.first)
		if end > len(full) || end > len(oldLog) || oldLog[:end] != full[:end] {
			c.fail("7 DivergencePoint: node %d keeps %q of %q, the winner of term %d has %q", n.config.Node, oldLog[:min(end, len(oldLog))], oldLog, w.term, full)
			return
		}
		termOf := before.visible().TermAt
		if end < len(oldLog) && end < len(full) && termOf(b.SaveEnd) == w.history.TermAt(b.SaveEnd) {
			c.fail("7 DivergencePoint: node %d drops %q, of which the winner of term %d has byte %v", n.config.Node, oldLog[end:], w.term, b.SaveEnd)
		}
	}
}

func (p *Proposer) ID() wal.ProposerID { return p.config.ID }

// checkLogs: 5 LogMatching between a node and every other, and with the writer it follows.
func (c *cluster) checkLogs(n *node) {
	v := n.visible()
	for _, x := range c.nodes {
		if x == n {
			continue
		}
		o := x.visible()
		for i := min(len(n.log), len(x.log)) - 1; i >= 0; i-- {
			at := c.first + wal.LSN(i)
			if t := v.TermAt(at); t != 0 && t == o.TermAt(at) {
				if n.log[:i+1] != x.log[:i+1] {
					c.fail("5 LogMatching: nodes %d and %d both hold %v in term %d, with %q and %q", n.config.Node, x.config.Node, at, t, n.log, x.log)
				}
				break
			}
		}
	}
	for _, w := range c.writers {
		if (w.phase == Recovering || w.phase == Leading) && n.StoredLastTerm() == w.term && !strings.HasPrefix(w.full(c.first), n.log) {
			c.fail("5 LogMatching: node %d adopted term %d and holds %q, its winner has %q", n.config.Node, w.term, n.log, w.full(c.first))
		}
	}
}

// checkWriterStep compares a writer before and after one answer.
func (c *cluster) checkWriterStep(before, w *writer) {
	if before.phase == Campaigning && (w.phase == Recovering || w.phase == Leading || w.phase == Deciding) {
		c.checkWin(w)
	}
	if w.commit > before.commit {
		c.checkCommitRule(w)
		c.checkCommit(w.commit, w.full(c.first), "writer")
		for i := len(c.committed); i < int(w.commit-c.first); i++ {
			c.committed = w.full(c.first)[:i+1]
			c.committedTerm = append(c.committedTerm[:len(c.committedTerm):len(c.committedTerm)], w.term)
		}
	}
	if w.commit < before.commit || w.horizon < before.horizon || w.horizon > w.commit && w.commit > 0 {
		c.fail("12 WriteOrder: %s goes from commit %v, horizon %v to %v, %v", name(w.id), before.commit, before.horizon, w.commit, w.horizon)
	}
}

func (c *cluster) checkWin(w *writer) {
	t := int(w.term)
	for len(c.won) <= t {
		c.won = append(c.won[:len(c.won):len(c.won)], 0)
	}
	if c.won[t] != 0 {
		c.fail("1 ElectionOnce: term %d is won by %s and by %s", t, name(c.won[t]), name(w.id))
	}
	c.won = append([]byte(nil), c.won...)
	c.won[t] = w.id
	w.truth = [nodesMax]wal.LSN{}

	donor := c.nodeIndex(w.election.Donor)
	w.ghost = w.votes[donor][:w.start-c.first]
	for i := range c.committed {
		if c.committedTerm[i] < w.term && (i >= len(w.ghost) || w.ghost[i] != c.committed[i]) {
			c.fail("8 LeaderCompleteness: %s wins term %d with %q, but %q was committed before", name(w.id), t, w.ghost, c.committed)
			break
		}
	}
	if !w.handedOut {
		w.base, w.window = w.start, ""
		return
	}
	end := min(w.start, w.base+wal.LSN(len(w.window)))
	if w.base > w.start || w.window[:end-w.base] != w.ghost[w.base-c.first:end-c.first] || w.start > end {
		c.fail("14 OneWriter: %s handed out %q from %v, and wins term %d on a log %q", name(w.id), w.window, w.base, t, w.ghost)
	}
}

// checkCommitRule: 10, counted from what the nodes really acknowledged.
func (c *cluster) checkCommitRule(w *writer) {
	for _, set := range [2][]wal.Member{c.membership.Members, c.membership.NewMembers} {
		n := 0
		for _, m := range set {
			if w.truth[c.nodeIndex(m.ID)] >= w.commit {
				n++
			}
		}
		if len(set) > 0 && 2*n <= len(set) {
			c.fail("10 CommitRule: %s commits %v in term %d, flushed there by %d of %d", name(w.id), w.commit, w.term, n, len(set))
		}
	}
	if w.commit < w.start {
		c.fail("10 CommitRule: %s commits %v below the start %v of term %d", name(w.id), w.commit, w.start, w.term)
	}
}

// checkCommit: 9 CommitSafety. A node may know of nothing that no writer committed.
func (c *cluster) checkCommit(commit wal.LSN, log, who string) {
	for i := range min(int(commit-c.first), len(c.committed)) {
		if log[i] != c.committed[i] {
			c.fail("9 CommitSafety: a %s commits %q, %q was committed before", who, log[:commit-c.first], c.committed)
		}
	}
	if who == "node" && int(commit-c.first) > len(c.committed) {
		c.fail("9 CommitSafety: a node believes %v committed, only %d bytes are", commit, len(c.committed))
	}
}
