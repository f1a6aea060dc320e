package consensus

import "github.com/seed7f3f3bb8/holdfast/wal"

// appended takes an acknowledgement. A flush LSN counts only if it comes from
// an AppendResponse of this term, after this connection's Elected (P4).
func (p *Proposer) appended(x *peer, r *AppendResponse) {
	if r.Term > p.term {
		p.seenTerm = max(p.seenTerm, r.Term)
		p.lost()
		return
	}
	if !x.elected || r.Term != p.term || r.Flush < x.resume || r.Flush > p.tail {
		p.hangUp(x)
		return
	}
	x.adopted = true
	if !x.stored || r.Flush > x.acked {
		x.stored, x.acked = true, max(x.acked, r.Flush)
		p.advance()
	}
}

// reachedStart reports whether x acknowledged, in this term, all that older terms left.
func (p *Proposer) reachedStart(x *peer) bool { return x.stored && x.acked >= p.start }

// advance raises commit and horizon.
func (p *Proposer) advance() {
	c := QuorumLSN(&p.config.Membership, func(n wal.NodeID) wal.LSN {
		// Below the start a majority proves nothing: those bytes are of older
		// terms and count only together with one of this term.
		if x := p.peer(n); p.reachedStart(x) {
			return x.acked
		}
		return 0
	})
	if p.phase == Recovering {
		p.ticks = recoveryTicksMax
		if p.quorum(p.reachedStart) {
			p.phase, p.attempts = Leading, 0
		}
	}
	if p.phase == Leading {
		p.commit = max(p.commit, c)
	}
	p.horizon = max(p.horizon, min(max(p.reached(), p.election.Horizon), p.commit))
}

// reached is what every member has (P5), 0 if one was not heard from in this term.
func (p *Proposer) reached() wal.LSN {
	least := p.tail
	for i := range p.peers {
		x := &p.peers[i]
		if !x.heard {
			return 0
		}
		at := x.divergence
		if x.stored {
			at = max(at, x.acked)
		}
		least = min(least, at)
	}
	return least
}
