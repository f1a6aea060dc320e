package consensus

import (
	"errors"
	"math"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// greeted takes an acceptor's greeting.
func (p *Proposer) greeted(x *peer, g *AcceptorGreeting) {
	if x.greeted || g.Node != x.node || g.Creation != p.config.Creation || g.Health != wal.Healthy {
		p.hangUp(x)
		return
	}
	x.greeted = true
	p.seenTerm = max(p.seenTerm, g.Term)
	switch p.phase {
	case Gathering:
		p.gather()
	case Probing, Campaigning, Deciding, Recovering, Leading:
		// A late one is asked too: the answer says where its log parts from this term's.
		p.ask(x)
	}
}

// gather moves on from Gathering as soon as a quorum has greeted.
func (p *Proposer) gather() {
	if !p.quorum(func(x *peer) bool { return x.greeted }) {
		return
	}
	if p.handedOut {
		p.phase, p.ticks = Probing, campaignTicksMax
		p.askAll()
		return
	}
	p.campaign()
}

var errTermsUsedUp = errors.New("an acceptor is in the highest term there is: no election is possible any more")

// campaign asks every greeted acceptor for its vote in a new term (P1).
func (p *Proposer) campaign() {
	if p.seenTerm == math.MaxUint64 {
		p.Stop(errTermsUsedUp)
		return
	}
	p.attempts++
	p.seenTerm++
	p.term = p.seenTerm
	for i := range p.peers {
		p.peers[i].newTerm()
	}
	p.phase, p.ticks = Campaigning, campaignTicksMax
	p.askAll()
}

func (p *Proposer) askAll() {
	for i := range p.peers {
		if p.peers[i].greeted {
			p.ask(&p.peers[i])
		}
	}
}

// ask sends a VoteRequest in the present term. After a won or lost campaign
// that is a question about the log: the answer carries it whether granted or not.
func (p *Proposer) ask(x *peer) {
	p.send(x, &VoteRequest{Generation: p.config.Membership.Generation, Term: p.term})
}

// voted takes an answer to a VoteRequest.
func (p *Proposer) voted(x *peer, r *VoteResponse) {
	if !x.greeted || r.History.Validate() != nil {
		p.hangUp(x)
		return
	}
	p.seenTerm = max(p.seenTerm, r.Term)
	if last := r.History.LastTerm(); p.handedOut && last > p.lastWon() {
		p.Stop(&FencedError{Term: last, Own: p.lastWon()})
		return
	}
	if p.phase == Probing {
		x.probed = true
		if p.quorum(func(x *peer) bool { return x.probed }) {
			p.campaign()
		}
		return
	}
	if r.Term < p.term {
		return // an answer to the probe that came before this campaign
	}
	if r.Term > p.term {
		p.lost()
		return
	}
	switch p.phase {
	case Campaigning:
		if !r.Granted {
			p.lost()
			return
		}
		x.vote, x.voted = r, true
		if p.quorum(func(x *peer) bool { return x.voted }) {
			p.win()
		}
	case Deciding:
		// Granted or refused, it can no longer take bytes of an older term, so
		// its answer narrows what may be committed.
		x.vote, x.voted = r, x.voted || r.Granted
		p.weigh()
	case Recovering, Leading:
		x.vote = r
		p.elect(x)
	}
}

// lost gives way to a higher term: whoever has it may be elected by now.
func (p *Proposer) lost() {
	switch p.phase {
	case Campaigning, Deciding, Recovering, Leading:
		p.retreat()
	}
}

// retreat drops every connection and waits before gathering again.
func (p *Proposer) retreat() {
	p.hangUpAll()
	p.phase = Waiting
	if p.handedOut {
		p.ticks = backoffTicksWriter + p.config.Jitter(backoffTicksWriter)
		return
	}
	p.ticks = backoffTicksMin + p.config.Jitter(min(backoffTicksMax, 1<<min(p.attempts, 8)))
}

// win chooses the donor and what the term begins with (P2).
func (p *Proposer) win() {
	donor := p.donor()
	v := donor.vote
	if last := v.History.LastTerm(); p.handedOut && !slices.Contains(p.won, last) {
		p.Stop(&FencedError{Term: last, Own: p.lastWon()})
		return
	}
	p.election = Election{
		Term: p.term, Donor: donor.node, Start: v.Flush, History: v.History,
		SystemID: v.SystemID, Properties: v.Properties,
	}
	p.weigh()
	p.phase = Deciding
	if !p.config.Decide {
		if err := p.Lead(Decision{Start: v.Flush, SystemID: v.SystemID, Properties: v.Properties}); err != nil {
			p.Stop(err)
		}
	}
}

// donor is the voter with the best log: highest by last visible term, then by
// flush LSN. A longer log of an older term may lack what a newer term committed.
func (p *Proposer) donor() *peer {
	var best *peer
	for i := range p.peers {
		x := &p.peers[i]
		if !x.voted {
			continue
		}
		if best == nil || better(x.vote, best.vote) {
			best = x
		}
	}
	return best
}

func better(x, y *VoteResponse) bool {
	if a, b := x.History.LastTerm(), y.History.LastTerm(); a != b {
		return a > b
	}
	return x.Flush > y.Flush
}

func (p *Proposer) lastWon() wal.Term {
	if len(p.won) == 0 {
		return 0
	}
	return p.won[len(p.won)-1]
}

func (p *Proposer) quorum(has func(*peer) bool) bool {
	return HasQuorum(&p.config.Membership, func(n wal.NodeID) bool { return has(p.peer(n)) })
}
