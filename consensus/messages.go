package consensus

import "github.com/seed7f3f3bb8/holdfast/wal"

// Message is one of the pointer types *Greeting, *VoteRequest, *Elected and
// *AppendRequest (proposer to acceptor), *AcceptorGreeting, *VoteResponse and
// *AppendResponse (acceptor to proposer), and *PeerCommit (between acceptors).
type Message interface{ message() }

// Greeting opens a stream. It must be the first message and comes once.
type Greeting struct {
	Version  uint32 // protocol version, Version
	Timeline wal.TimelineID
	Creation wal.CreationID

	// Proposer and Connection order the streams of one proposer instance: a
	// greeting with a connection number at or below one already seen is stale.
	Proposer   wal.ProposerID
	Connection uint64

	SystemID   uint64 // 0 = any
	Membership wal.Membership
}

// Version is the protocol version that this package speaks.
const Version = 1

// VoteRequest asks for the acceptor's vote in Term.
type VoteRequest struct {
	Generation uint64
	Term       wal.Term
}

// Elected tells an acceptor that its sender has won Term.
type Elected struct {
	Generation uint64
	Term       wal.Term
	Resume     wal.LSN // this acceptor's divergence point: where the proposer will continue
	History    wal.History
	SystemID   uint64
	Properties []byte
}

// AppendRequest carries WAL that begins exactly at the acceptor's write LSN. Empty Data is a heartbeat.
// Data is only valid until Step returns unless the caller owns it longer: a
// chunk in Batch.Appends shares it.
type AppendRequest struct {
	Generation uint64
	Term       wal.Term
	Begin      wal.LSN
	Commit     wal.LSN
	Horizon    wal.LSN
	CRC        uint32 // CRC-32C of Data
	Data       []byte
}

// AcceptorGreeting answers a Greeting.
type AcceptorGreeting struct {
	Node       wal.NodeID
	Creation   wal.CreationID
	Term       wal.Term
	Membership wal.Membership
	Flush      wal.LSN
	Commit     wal.LSN
	Health     wal.Health

	// Limits that the shell states, in bytes: the largest AppendRequest.Data
	// and how much may be unacknowledged on a stream.
	RequestBytesMax uint64
	WindowBytes     uint64
}

// VoteResponse answers a VoteRequest. A refusal carries the acceptor's log
// too, so that a proposer that won elsewhere can go on with Elected.
type VoteResponse struct {
	Term       wal.Term // the acceptor's term after the request
	Granted    bool
	Flush      wal.LSN
	Commit     wal.LSN
	Horizon    wal.LSN
	History    wal.History // visible part
	SystemID   uint64
	Properties []byte
}

// AppendResponse acknowledges everything below Flush. Flush and Commit mean
// something only to a proposer of the same Term.
type AppendResponse struct {
	Term   wal.Term
	Flush  wal.LSN
	Commit wal.LSN
	Stages Stages
}

// Stages says where the time of the acknowledged batch went, in nanoseconds.
// The shell fills it in; the rules never look at it.
type Stages struct {
	QueueNanos uint64 // oldest message of the batch, from received to taken
	WriteNanos uint64 // handing the batch to the file
	SyncNanos  uint64 // the fdatasync
}

// PeerCommit tells an acceptor what another acceptor of the same timeline knows to be committed.
type PeerCommit struct {
	Creation    wal.CreationID
	LastLogTerm wal.Term
	Commit      wal.LSN
}

func (*Greeting) message()         {}
func (*VoteRequest) message()      {}
func (*Elected) message()          {}
func (*AppendRequest) message()    {}
func (*AcceptorGreeting) message() {}
func (*VoteResponse) message()     {}
func (*AppendResponse) message()   {}
func (*PeerCommit) message()       {}
