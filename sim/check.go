package sim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Failure is a broken invariant.
type Failure struct {
	Invariant string `json:"invariant"` // number and name as in docs/evidence.md
	Detail    string `json:"detail"`
	Event     int    `json:"event"` // how many events had happened
}

func (f *Failure) String() string {
	return fmt.Sprintf("%s, at event %d: %s", f.Invariant, f.Event, f.Detail)
}

func (w *world) fail(invariant, format string, args ...any) {
	if w.failure == nil {
		w.failure = &Failure{invariant, fmt.Sprintf(format, args...), w.events}
		w.note("FAILED "+invariant, 0, 0, 0)
	}
}

// check asserts what must hold of a node after every turn.
func (n *node) check() {
	w, s := n.w, n.acc.Status()
	if s.Horizon > s.Commit || s.Commit > s.Flush || s.Flush > s.Write {
		w.fail("12 WriteOrder", "node %d: horizon %v, commit %v, flush %v, write %v", n.id, s.Horizon, s.Commit, s.Flush, s.Write)
	}
	if s.Term < n.before.Term || s.Commit < n.before.Commit || s.Horizon < n.before.Horizon {
		w.fail("12 WriteOrder", "node %d goes back: %+v, then %+v", n.id, n.before, s)
	}
	if n.loop.InboxBytes() > inboxBytes {
		w.fail("19 Bounded", "node %d: %d bytes wait in an inbox of %d", n.id, n.loop.InboxBytes(), inboxBytes)
	}
	if n.damaged || s.Health != wal.Healthy {
		n.before = s
		return
	}
	if s.Flush != n.shadow.end() || s.Term != n.shadow.state.Term {
		w.fail("12 WriteOrder", "node %d says term %d, flush %v; its disk has term %d, %v", n.id, s.Term, s.Flush, n.shadow.state.Term, n.shadow.end())
	}
	if s.Commit > n.before.Commit {
		if c := int(s.Commit - w.first); c > len(w.committed) || !bytes.Equal(n.shadow.data[n.before.Commit-w.first:c], w.committed[n.before.Commit-w.first:c]) {
			w.fail("9 CommitSafety", "node %d believes %v committed: it holds other bytes there, or only %d bytes are", n.id, s.Commit, len(w.committed))
		}
	}
	if s.Horizon > n.before.Horizon {
		w.checkHorizon(n, s.Horizon)
	}
	n.before = s
}

// checkHorizon: what may be trimmed here, every member has (17).
func (w *world) checkHorizon(n *node, h wal.LSN) {
	c := int(h - w.first)
	if c > len(w.committed) {
		w.fail("17 TrimSafety", "node %d may trim to %v, only %d bytes are committed", n.id, h, len(w.committed))
		return
	}
	for _, o := range w.nodes {
		if !o.damaged && (len(o.shadow.data) < c || !bytes.Equal(o.shadow.data[:c], w.committed[:c])) {
			w.fail("17 TrimSafety", "node %d may trim to %v, node %d does not have all that is below", n.id, h, o.id)
		}
	}
}

// checkWriter asserts what must hold of a proposer after every step.
func (w *world) checkWriter(x *writer) {
	st := x.p.Status()
	if st.Phase == consensus.Recovering || st.Phase == consensus.Leading {
		if x.ledger == nil || x.ledger.term != st.Term {
			w.won(x, st)
		}
	}
	if x.ledger == nil {
		return
	}
	if st.Commit > x.w.known[x.id] {
		// What an earlier term of this instance committed stays committed.
		if st.Phase == consensus.Leading {
			w.commit(x.ledger, st.Commit)
		} else {
			w.fail("10 CommitRule", "proposer %d raises its commit to %v while it is %v", x.id, st.Commit, st.Phase)
		}
		x.w.known[x.id] = st.Commit
	}
	if st.Commit < x.w.known[x.id] || st.Horizon > st.Commit {
		w.fail("12 WriteOrder", "proposer %d: commit %v after %v, horizon %v", x.id, st.Commit, x.w.known[x.id], st.Horizon)
	}
}

// won notes that a proposer won a term (1, 8, and P6).
func (w *world) won(x *writer, st consensus.ProposerStatus) {
	e := x.p.Election()
	w.note("won", x.id, int(st.Term), int(st.Start))
	w.elections++
	if l := w.ledgers[st.Term]; l != nil {
		w.fail("1 ElectionOnce", "term %d is won by proposers %d and %d", st.Term, l.writer.id, x.id)
		return
	}
	ghost := x.votes[e.Donor-1]
	n := int(st.Start - w.first)
	if n > len(ghost) {
		w.fail("8 LeaderCompleteness", "proposer %d starts term %d at %v, its donor had %d bytes", x.id, st.Term, st.Start, len(ghost))
		return
	}
	l := &ledger{term: st.Term, writer: x, start: st.Start, first: w.first, log: slices.Clone(ghost[:n]), acked: make([]wal.LSN, w.nodes_())}
	for _, c := range w.commits {
		if end := int(c.end - w.first); c.term < st.Term && (end > n || !bytes.Equal(l.log[:end], w.committed[:end])) {
			w.fail("8 LeaderCompleteness", "proposer %d starts term %d at %v without all that term %d committed, up to %v", x.id, st.Term, st.Start, c.term, c.end)
			return
		}
	}
	if len(x.window) > 0 {
		// It has handed out LSNs: its bytes, and nobody else's, go on.
		if st.Start < x.base || st.Start > x.base+wal.LSN(len(x.window)) || !bytes.Equal(ghost[x.base-w.first:n], x.window[:st.Start-x.base]) {
			w.fail("14 ReadCommitted", "proposer %d handed out LSNs from %v and goes on in term %d at %v upon another writer's bytes", x.id, x.base, st.Term, st.Start)
			return
		}
		l.log = append(l.log, x.window[st.Start-x.base:]...)
	}
	w.ledgers[st.Term], x.ledger = l, l
}

// refused notes why a stream was ended.
func (w *world) refused(k *conn, err *consensus.Error) {
	w.refusals[err.Reason]++
	if err.Reason == consensus.ReasonBelowCommit || err.Reason == consensus.ReasonWrongSystem || err.Reason == consensus.ReasonWrongTimeline {
		w.fail("7 DivergencePoint", "node %d refuses proposer %d: %v", k.node.id, k.writer.id, err)
	}
}
