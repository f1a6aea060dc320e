package wal

import "slices"

// State is what an acceptor must remember of a timeline besides the bytes. It
// is durable as a whole or not at all: it travels in the log as one state frame.
type State struct {
	Creation   CreationID
	SystemID   uint64 // identifier of the database that writes here; 0 until one is known
	FirstLSN   LSN    // where the log began when it was created; never changes
	Membership Membership

	Term     Term       // highest term voted for or adopted; never goes back
	VotedFor ProposerID // who has this term's vote; zero while Term is 0

	History    History // as adopted with the last election; may reach beyond the log's end
	Properties []byte  // opaque to Holdfast, from the last election

	// Horizon <= Commit <= the log's end. These are the values at the time the
	// state was saved; what an acceptor knows in memory may be ahead.
	Commit  LSN
	Horizon LSN
}

// Clone returns a copy that shares no memory with s.
func (s State) Clone() State {
	s.History = slices.Clone(s.History)
	s.Properties = slices.Clone(s.Properties)
	s.Membership.Members = slices.Clone(s.Membership.Members)
	s.Membership.NewMembers = slices.Clone(s.Membership.NewMembers)
	return s
}

// Health says whether an acceptor's copy of a timeline can be relied on.
type Health uint8

const (
	// Healthy: votes, appends and reads are served.
	Healthy Health = iota
	// Poisoned: a write or a sync failed. Nothing is acknowledged and no vote
	// is given until the log has been opened again and read from disk.
	Poisoned
	// Quarantined: bytes or state on disk are known to be damaged.
	Quarantined
	// Lost: this node is a member but its copy is gone. It answers status only.
	Lost
)

func (h Health) String() string {
	switch h {
	case Healthy:
		return "ok"
	case Poisoned:
		return "poisoned"
	case Quarantined:
		return "quarantined"
	case Lost:
		return "lost"
	}
	return "unknown"
}
