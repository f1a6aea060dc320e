package proposer

import (
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Status is a copy of what a proposer knows.
type Status struct {
	Timeline   wal.TimelineID
	Creation   wal.CreationID
	Membership wal.Membership

	Phase   consensus.Phase
	Err     error // why it stopped
	Term    wal.Term
	Start   wal.LSN // where the writing of the term began
	Commit  wal.LSN
	Horizon wal.LSN
	Tail    wal.LSN

	// WindowBegin is the first byte that is still in memory.
	WindowBegin wal.LSN

	Members []MemberStatus // ascending by node id
}

// MemberStatus is what a proposer knows of one member.
type MemberStatus struct {
	Node wal.NodeID
	Addr string

	Connected bool
	// Adopted: it stores this term's log on its present stream.
	Adopted bool
	// Flush is what it has acknowledged in this term; 0 if nothing, which leaves it unknown.
	Flush wal.LSN
	// LagBytes is what it lacks of the log, 0 while Flush is unknown.
	LagBytes uint64
	// Contact is when its last message came; zero if none came.
	Contact time.Time
	// Err is why it does not take part; nil if nothing is known to be wrong.
	Err error
	// Refill is set while it is filled from another member's disk.
	Refill *RefillStatus
}

// RefillStatus tells how the filling of a member gets on.
type RefillStatus struct {
	Source         wal.NodeID
	Begin          wal.LSN // where it began
	At             wal.LSN // how far it is
	End            wal.LSN // the end of the log now
	BytesPerSecond float64
	// ETA is how long it takes at this rate if nothing is appended; 0 = not known.
	ETA time.Duration
}

// Status returns what the proposer knows now. It may be called after Close.
func (p *Proposer) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := Status{
		Timeline: p.config.Timeline, Creation: p.creation, Membership: p.membership,
		Phase: p.state.Phase, Err: p.err, Term: p.state.Term, Start: p.state.Start,
		Commit: p.state.Commit, Horizon: p.state.Horizon, Tail: p.window.tail, WindowBegin: p.window.begin,
	}
	for i, peer := range p.core.Peers() {
		m := p.members[i]
		x := MemberStatus{
			Node: m.node, Addr: m.addr, Connected: peer.Connected, Adopted: peer.Adopted, Flush: peer.Acked,
			Contact: m.contact, Err: m.err,
		}
		if peer.Acked > 0 && peer.Acked < p.window.tail {
			x.LagBytes = uint64(p.window.tail - peer.Acked)
		}
		if c := m.conn; c != nil && c.refill != nil {
			x.Refill = c.refill.status(c.pos, p.window.tail)
		}
		st.Members = append(st.Members, x)
	}
	return st
}

// Peers returns what is known of the members, ascending by node id.
func (p *Proposer) Peers() []MemberStatus { return p.Status().Members }

func (r *refill) status(at, end wal.LSN) *RefillStatus {
	s := &RefillStatus{Source: r.source.node, Begin: r.begin, At: at, End: end}
	if passed := time.Since(r.since).Seconds(); passed > 0 {
		s.BytesPerSecond = float64(at-r.begin) / passed
	}
	if s.BytesPerSecond > 0 {
		s.ETA = time.Duration(float64(end-at) / s.BytesPerSecond * float64(time.Second))
	}
	return s
}
