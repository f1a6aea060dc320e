package consensus

import "github.com/seed7f3f3bb8/holdfast/wal"

// ProposerStatus is a copy of what a proposer knows.
type ProposerStatus struct {
	Phase   Phase
	Err     error // set when Stopped
	Term    wal.Term
	Start   wal.LSN // where this term's writing began
	Commit  wal.LSN
	Horizon wal.LSN
	Tail    wal.LSN
}

// Status returns the phase, the term and the positions.
func (p *Proposer) Status() ProposerStatus {
	return ProposerStatus{Phase: p.phase, Err: p.err, Term: p.term, Start: p.start, Commit: p.commit, Horizon: p.horizon, Tail: p.tail}
}

// Stream says how to feed one acceptor.
type Stream struct {
	Connection uint64
	Generation uint64
	Term       wal.Term
	Resume     wal.LSN // the first byte it lacks; stated in its Elected
}

// Stream returns how to feed node, and false while its connection has not been
// sent Elected. Appends go behind the Elected on that connection, contiguous
// from Resume. Bytes below Start that it lacks come from Source.
func (p *Proposer) Stream(node wal.NodeID) (Stream, bool) {
	x := p.peer(node)
	if x == nil || !x.elected {
		return Stream{}, false
	}
	return Stream{Connection: x.connection, Generation: p.config.Membership.Generation, Term: p.term, Resume: x.resume}, true
}

// Source returns the member from which to read bytes of this term's log that
// begin at lsn, for a recovery read pinned to this term: one that has adopted
// the term, holds the byte, and is not the member to be fed; the one with the most.
func (p *Proposer) Source(feed wal.NodeID, lsn wal.LSN) (wal.NodeID, bool) {
	var best *peer
	for i := range p.peers {
		x := &p.peers[i]
		if x.node != feed && x.adopted && x.acked > lsn && (best == nil || x.acked > best.acked) {
			best = x
		}
	}
	if best == nil {
		return 0, false
	}
	return best.node, true
}

// PeerStatus is a copy of what a proposer knows of one member.
type PeerStatus struct {
	Node      wal.NodeID
	Connected bool
	Adopted   bool    // it stores this term's log on its present connection
	Acked     wal.LSN // in this term; 0 if it has acknowledged nothing
	Heard     bool    // its log is known in this term; otherwise it holds the horizon
}

// Peers returns what is known of the members, ascending by node id.
func (p *Proposer) Peers() []PeerStatus {
	out := make([]PeerStatus, len(p.peers))
	for i, x := range p.peers {
		out[i] = PeerStatus{x.node, x.connected, x.adopted, x.acked, x.heard}
	}
	return out
}
