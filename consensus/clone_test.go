package consensus

import "slices"

// clone returns a copy that can be stepped without changing a. What a state
// or a message refers to is never changed in place, so it is shared.
func (a *Acceptor) clone() *Acceptor {
	c := *a
	c.sessions = slices.Clone(a.sessions)
	c.seen = slices.Clone(a.seen)
	return &c
}

// clone returns a copy that can be stepped without changing p.
func (p *Proposer) clone() *Proposer {
	c := *p
	c.out = slices.Clone(p.out)
	c.won = slices.Clone(p.won)
	c.peers = slices.Clone(p.peers)
	return &c
}
