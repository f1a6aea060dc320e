package consensus

import (
	"fmt"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Election is what a won vote found.
type Election struct {
	Term       wal.Term
	Donor      wal.NodeID
	Start      wal.LSN     // end of the donor's log
	History    wal.History // of the donor, visible part
	SystemID   uint64      // as the donor's log has it
	Properties []byte      // likewise
	Commit     wal.LSN     // highest commit LSN that a voter knew of
	Horizon    wal.LSN     // highest horizon LSN that a voter knew of

	// MayBeCommitted is the highest position that can have been committed in
	// any run that fits the answers. Nothing below it may be given up. It falls
	// as more members answer while the phase is Deciding: a caller that must
	// start lower may wait for them.
	MayBeCommitted wal.LSN
}

// Decision says how to go on from an Election.
type Decision struct {
	// Start is where the term begins to write: Election.Start, or lower, but
	// not below Election.MayBeCommitted. The log is cut there.
	Start      wal.LSN
	SystemID   uint64
	Properties []byte
}

// Election returns what the vote found while the phase is Deciding or later.
func (p *Proposer) Election() Election { return p.election }

// weigh sums up what the answers of this term say about the donor's log.
func (p *Proposer) weigh() {
	e := &p.election
	for i := range p.peers {
		if v := p.peers[i].vote; v != nil {
			e.Commit, e.Horizon = max(e.Commit, v.Commit), max(e.Horizon, v.Horizon)
		}
	}
	e.MayBeCommitted = max(e.Commit, p.mayBeCommitted(p.peer(e.Donor).vote))
}

// mayBeCommitted is the highest LSN that a quorum may have flushed in the
// donor's log, given the answers: a silent member may hold everything. It is
// the lower of both sets' results in a joint membership.
func (p *Proposer) mayBeCommitted(donor *VoteResponse) wal.LSN {
	m := &p.config.Membership
	l := p.mayBeCommittedBy(m.Members, donor)
	if len(m.NewMembers) > 0 {
		l = min(l, p.mayBeCommittedBy(m.NewMembers, donor))
	}
	return l
}

func (p *Proposer) mayBeCommittedBy(set []wal.Member, donor *VoteResponse) wal.LSN {
	need := Quorum(len(set))
	var common []wal.LSN
	for _, m := range set {
		x := p.peer(m.ID)
		if x.vote == nil {
			need--
			continue
		}
		at := donor.Flush
		if len(donor.History) > 0 {
			point, err := wal.Divergence(donor.History, x.vote.History, x.vote.Flush)
			if err != nil {
				point = x.vote.Flush // cannot be judged: assume that all of it counts
			}
			at = min(point, donor.Flush)
		}
		common = append(common, at)
	}
	if need < 1 {
		return donor.Flush
	}
	slices.Sort(common)
	return common[len(common)-need]
}

// Lead goes on from Deciding: the term's log is the donor's up to d.Start. It
// returns an error, and changes nothing, if d would give up what may be
// committed or the phase is not Deciding.
func (p *Proposer) Lead(d Decision) error {
	e := &p.election
	if p.phase != Deciding {
		return fmt.Errorf("lead: the proposer is %v, not deciding", p.phase)
	}
	if d.Start > e.Start || d.Start < e.MayBeCommitted {
		return fmt.Errorf("lead: start %v is outside [%v, %v]: below it bytes may be committed, above it there are none", d.Start, e.MayBeCommitted, e.Start)
	}
	if len(d.Properties) > wal.PropertiesBytesMax {
		return fmt.Errorf("lead: %d bytes of properties, at most %d are allowed", len(d.Properties), wal.PropertiesBytesMax)
	}
	if p.handedOut && d.Start < p.commit {
		return fmt.Errorf("lead: start %v is below this proposer's commit LSN %v", d.Start, p.commit)
	}
	history := e.History.Fold(e.Horizon).Extend(p.term, d.Start)
	if len(history) > wal.HistoryMax {
		return fmt.Errorf("lead: the term history would have %d entries, at most %d are allowed", len(history), wal.HistoryMax)
	}
	p.start, p.history, p.properties = d.Start, history, d.Properties
	if d.SystemID != 0 {
		p.systemID = d.SystemID
	}
	if !p.handedOut {
		p.tail = d.Start
	}
	p.won = append(p.won, p.term)
	p.phase, p.ticks = Recovering, recoveryTicksMax

	// The donor first (P3): the others read from a log that has adopted this term.
	p.elect(p.peer(e.Donor))
	for i := range p.peers {
		if x := &p.peers[i]; x.node != e.Donor {
			p.elect(x)
		}
	}
	return nil
}

// elect sends Elected to a peer that has answered on its present connection,
// and a heartbeat, whose acknowledgement says that the term was adopted.
func (p *Proposer) elect(x *peer) {
	if x.vote == nil || !x.greeted || x.elected {
		return
	}
	point, err := wal.Divergence(p.history, x.vote.History, x.vote.Flush)
	if err != nil {
		p.reject(x, err)
		return
	}
	x.elected, x.resume = true, point
	if !x.heard {
		x.heard, x.divergence = true, point
	}
	generation := p.config.Membership.Generation
	p.send(x, &Elected{
		Generation: generation, Term: p.term, Resume: point,
		History: p.history, SystemID: p.systemID, Properties: p.properties,
	})
	p.send(x, &AppendRequest{Generation: generation, Term: p.term, Begin: point, Commit: p.commit, Horizon: p.horizon})
}

// donorAway reports whether this term's start is on no connected log.
func (p *Proposer) donorAway() bool {
	return !slices.ContainsFunc(p.peers, func(x peer) bool {
		return x.connected && (x.node == p.election.Donor || x.adopted && p.reachedStart(&x))
	})
}
