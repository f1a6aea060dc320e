package consensus

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// vote answers a VoteRequest (A3). There is no test of how fresh the
// candidate's log is: a proposer starts from the best log of its quorum.
func (a *Acceptor) vote(s StreamID, r *VoteRequest, b *Batch) {
	x := a.session(s)
	if x == nil || !a.ready(s, r.Generation, b) {
		return
	}
	if r.Term == 0 {
		a.end(s, b, ReasonProtocol, 0, "a vote was asked for term 0; terms begin at 1")
		return
	}
	st := a.State()
	granted := false
	switch {
	case r.Term > st.Term:
		granted = true
		st.Term, st.VotedFor = r.Term, x.origin.proposer
		a.save(b, st, a.write)
	case r.Term == st.Term:
		// A lost reply or a reconnect must not look like a refusal.
		granted = st.VotedFor == x.origin.proposer
	}
	b.pending = append(b.pending, Reply{s, &VoteResponse{
		Term: st.Term, Granted: granted,
		Flush: a.flush, Commit: a.commit, Horizon: a.horizon,
		History: a.visible(), SystemID: st.SystemID, Properties: st.Properties,
	}})
}

// elected adopts the winner of a term: from here on this log is a prefix of
// the winner's (A4). One state frame makes term, vote, history, properties and
// the truncation durable together.
func (a *Acceptor) elected(s StreamID, e *Elected, b *Batch) {
	x := a.session(s)
	if x == nil || !a.ready(s, e.Generation, b) || e.Term < a.state.Term {
		return
	}
	if detail := checkElected(e); detail != "" {
		reason := ReasonProtocol
		if len(e.History) > wal.HistoryMax {
			reason = ReasonHistoryTooLong
		}
		a.end(s, b, reason, 0, detail)
		return
	}
	if e.Term == a.state.History.LastTerm() && a.state.VotedFor != x.origin.proposer {
		a.end(s, b, ReasonProtocol, 0, fmt.Sprintf("term %d was adopted here from another proposer: a term has one winner", e.Term))
		return
	}
	if e.SystemID != 0 && a.state.SystemID != 0 && e.SystemID != a.state.SystemID {
		a.end(s, b, ReasonWrongSystem, 0, fmt.Sprintf("this log belongs to database system %d, the winner of term %d is of system %d", a.state.SystemID, e.Term, e.SystemID))
		return
	}
	point, err := wal.Divergence(e.History, a.visible(), a.flush)
	if err != nil {
		a.end(s, b, ReasonProtocol, 0, err.Error())
		return
	}
	if point != e.Resume {
		a.end(s, b, ReasonDiverged, point, fmt.Sprintf("the winner would resume at %v, the logs part at %v: greet and ask again", e.Resume, point))
		return
	}
	if point < a.commit {
		a.end(s, b, ReasonBelowCommit, a.commit, fmt.Sprintf("truncation to %v is below the commit LSN %v", point, a.commit))
		return
	}
	st := a.State()
	st.Term, st.VotedFor, st.History = e.Term, x.origin.proposer, e.History
	st.Properties = e.Properties
	if e.SystemID != 0 {
		st.SystemID = e.SystemID
	}
	if point == a.write && sameElection(&st, &a.state) {
		return
	}
	a.save(b, st.Clone(), point)
}

// checkElected reports what is wrong with the form of e, "" if nothing is.
func checkElected(e *Elected) string {
	if err := e.History.Validate(); err != nil {
		return err.Error()
	}
	if e.Term == 0 || e.History.LastTerm() != e.Term {
		return fmt.Sprintf("the history of the winner of term %d ends with term %d", e.Term, e.History.LastTerm())
	}
	if len(e.Properties) > wal.PropertiesBytesMax {
		return fmt.Sprintf("%d bytes of properties, at most %d are allowed", len(e.Properties), wal.PropertiesBytesMax)
	}
	return ""
}

func sameElection(x, y *wal.State) bool {
	return x.Term == y.Term && x.VotedFor == y.VotedFor && x.SystemID == y.SystemID &&
		x.History.Equal(y.History) && string(x.Properties) == string(y.Properties)
}

// ready reports whether this copy may vote and store for the sender's
// generation, and ends the stream if not (A9).
func (a *Acceptor) ready(s StreamID, generation uint64, b *Batch) bool {
	if a.health != wal.Healthy {
		e := a.unhealthy()
		a.end(s, b, e.Reason, 0, e.Detail)
		return false
	}
	if own := a.state.Membership.Generation; generation != own {
		a.end(s, b, ReasonMembership, 0, fmt.Sprintf("membership generation %d, here %d holds", generation, own))
		return false
	}
	return true
}
