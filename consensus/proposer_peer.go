package consensus

import "github.com/seed7f3f3bb8/holdfast/wal"

// peer is what a proposer knows of one member. A connection carries at most
// one Elected: a new campaign begins with new connections, so a late answer
// can never be taken for one to a newer request.
type peer struct {
	node       wal.NodeID
	connection uint64 // number of the newest connection; rises
	connected  bool

	greeted bool // on this connection
	vote    *VoteResponse
	probed  bool // on this connection, answered the probe

	elected bool    // Elected was sent on this connection
	resume  wal.LSN // where it continues on this connection
	adopted bool    // it has acknowledged this term on this connection

	// Of the present term, across connections:
	voted      bool    // its vote counts
	heard      bool    // divergence is known
	divergence wal.LSN // where its log parted from this term's
	stored     bool    // it has acknowledged something in this term
	acked      wal.LSN // highest flush LSN it acknowledged in this term, meaningful if stored
}

func (x *peer) connect() {
	x.connection++
	x.connected = true
	x.greeted, x.probed, x.elected, x.adopted = false, false, false, false
}

func (x *peer) disconnect() {
	x.connected = false
	x.greeted, x.probed, x.elected, x.adopted = false, false, false, false
}

// newTerm forgets what belongs to an older term.
func (x *peer) newTerm() {
	x.vote, x.voted, x.heard, x.divergence, x.stored, x.acked = nil, false, false, 0, false, 0
}
