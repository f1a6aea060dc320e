package consensus

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// greet opens a session (A2). It answers whatever the copy's health, so that a
// proposer learns why this node will not vote.
func (a *Acceptor) greet(s StreamID, g *Greeting, b *Batch) {
	if a.session(s) != nil {
		a.end(s, b, ReasonProtocol, 0, "a second greeting on one stream")
		return
	}
	if e := a.checkGreeting(g); e != nil {
		e.Term = a.state.Term
		b.Ends = append(b.Ends, End{s, e})
		return
	}
	o := origin{g.Proposer, g.Connection}
	if newest := a.newest(o.proposer); newest != nil && newest.connection >= o.connection {
		a.end(s, b, ReasonStaleStream, 0, fmt.Sprintf("connection %d of this proposer came after connection %d", o.connection, newest.connection))
		return
	}
	for i := 0; i < len(a.sessions); i++ {
		if x := a.sessions[i]; x.origin.proposer == o.proposer {
			a.end(x.stream, b, ReasonStaleStream, 0, fmt.Sprintf("connection %d of the same proposer replaces this one", o.connection))
			i--
		}
	}
	a.remember(o)
	a.sessions = append(a.sessions, session{s, o})

	st := a.state
	if a.health == wal.Healthy && g.Membership.Generation > st.Membership.Generation {
		st = a.State()
		st.Membership = g.Membership
		a.save(b, st, a.write)
	}
	b.pending = append(b.pending, Reply{s, &AcceptorGreeting{
		Node: a.config.Node, Creation: st.Creation, Term: st.Term, Membership: st.Membership,
		Flush: a.flush, Commit: a.commit, Health: a.health,
		RequestBytesMax: uint64(a.config.RequestBytesMax), WindowBytes: uint64(a.config.WindowBytes),
	}})
}

// checkGreeting reports why g may not speak to this timeline.
func (a *Acceptor) checkGreeting(g *Greeting) *Error {
	st := &a.state
	switch {
	case g.Version != Version:
		return &Error{Reason: ReasonProtocol, Detail: fmt.Sprintf("protocol version %d, this acceptor speaks %d", g.Version, Version)}
	case g.Timeline != a.config.Timeline:
		return &Error{Reason: ReasonWrongTimeline, Detail: fmt.Sprintf("the greeting is for %v, this is %v", g.Timeline, a.config.Timeline)}
	case g.Creation != st.Creation:
		return &Error{Reason: ReasonWrongTimeline, Detail: fmt.Sprintf("%v was created as %v here, the greeting speaks of %v: that is another log under the same name", g.Timeline, st.Creation, g.Creation)}
	case g.Proposer.IsZero():
		return &Error{Reason: ReasonProtocol, Detail: "the greeting has no proposer id"}
	case g.SystemID != 0 && st.SystemID != 0 && g.SystemID != st.SystemID:
		return &Error{Reason: ReasonWrongSystem, Detail: fmt.Sprintf("this log belongs to database system %d, the greeting is of system %d", st.SystemID, g.SystemID)}
	}
	return a.checkMembership(&g.Membership)
}

// checkMembership compares a proposer's membership with the stored one. A
// higher generation is welcome if this node is in it.
func (a *Acceptor) checkMembership(m *wal.Membership) *Error {
	own := &a.state.Membership
	detail := ""
	if err := m.Validate(); err != nil {
		detail = err.Error()
	} else if m.Generation < own.Generation {
		detail = fmt.Sprintf("membership generation %d is out of date, generation %d holds here", m.Generation, own.Generation)
	} else if m.Generation == own.Generation && !m.Equal(*own) {
		detail = fmt.Sprintf("membership generation %d lists other members than it does here", m.Generation)
	} else if m.Generation > own.Generation && !m.Has(a.config.Node) {
		detail = fmt.Sprintf("node %d is no member in generation %d", a.config.Node, m.Generation)
	} else {
		return nil
	}
	return &Error{Reason: ReasonMembership, Detail: detail}
}

// newest is the newest connection of a proposer that was seen here.
func (a *Acceptor) newest(p wal.ProposerID) *origin {
	for i := range a.seen {
		if a.seen[i].proposer == p {
			return &a.seen[i]
		}
	}
	return nil
}

func (a *Acceptor) remember(o origin) {
	if n := a.newest(o.proposer); n != nil {
		n.connection = o.connection
		return
	}
	if len(a.seen) == seenMax {
		a.seen = append(a.seen[:0], a.seen[1:]...)
	}
	a.seen = append(a.seen, o)
}
