package consensus

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Phase is where a proposer stands.
type Phase uint8

const (
	// Gathering: waiting for greetings of a quorum.
	Gathering Phase = iota
	// Probing: this instance has handed out LSNs and met a higher term. It
	// looks into a quorum's histories, without disturbing anyone, for another
	// writer's term before it campaigns again.
	Probing
	// Campaigning: votes are asked for.
	Campaigning
	// Deciding: a quorum has voted; the caller must call Lead or Stop.
	Deciding
	// Recovering: the term is won and its start is not yet committed.
	Recovering
	// Leading: the term's start is committed.
	Leading
	// Waiting: backing off before gathering again.
	Waiting
	// Stopped: for good; see Err.
	Stopped
)

func (p Phase) String() string {
	return [...]string{"gathering", "probing", "campaigning", "deciding", "recovering", "leading", "waiting", "stopped"}[p]
}

// ProposerConfig says who proposes and to whom.
type ProposerConfig struct {
	ID         wal.ProposerID // drawn at random by this instance; never shared
	Timeline   wal.TimelineID
	Creation   wal.CreationID
	Membership wal.Membership
	SystemID   uint64 // 0 = whatever the log says
	Decide     bool   // stop in Deciding after each won vote, until Lead or Stop

	// Jitter returns a number in [0, n) and spreads campaigns of rivals.
	Jitter func(n int) int
}

// Back-off between campaigns, in ticks. A writer that has handed out LSNs
// leaves a rival the time to show itself in a history.
const (
	backoffTicksMin    = 1
	backoffTicksMax    = 32
	backoffTicksWriter = 4
	campaignTicksMax   = 50  // a campaign that is not answered is given up
	recoveryTicksMax   = 100 // a recovery in which no acceptor gets on is given up
	donorTicksMax      = 20  // how long a recovery waits for a donor that is away
)

// Proposer is the single writer's part of the protocol: it wins a term, brings
// the acceptors' logs to its own, and knows what is committed. It keeps no WAL;
// the caller holds the bytes and sends them. It is not safe for concurrent use.
//
// The caller opens a stream to every member whenever there is none: it calls
// Connect, sends the Greeting, feeds every message to Step, and calls
// Disconnect when the stream ends. After every call it takes Outputs and
// performs them in order. Tick is called at a steady pace.
type Proposer struct {
	config ProposerConfig
	phase  Phase
	err    error
	out    []Output

	// term is the newest term this instance campaigned in. Votes and
	// acknowledgements are about this term only.
	term     wal.Term
	seenTerm wal.Term // highest term met anywhere; never below term

	// won are the terms that this instance won, ascending. Bytes that a log
	// holds in any other term above the first of these are another writer's.
	won []wal.Term
	// handedOut is set once an LSN was given to a client. From then on the log
	// of this instance may only be continued, never begun anew (P6).
	handedOut bool

	election   Election
	history    wal.History // the log of term: the donor's, and this term from start on
	start      wal.LSN     // where this term's writing begins
	systemID   uint64
	properties []byte

	horizon wal.LSN // horizon <= commit, never goes back
	commit  wal.LSN // commit <= tail, never goes back
	tail    wal.LSN // end of what the caller holds and hands out

	peers    []peer // one per member, ascending by node id
	attempts int    // campaigns since the last commit
	ticks    int    // ticks until the present phase is given up or the wait is over
}

// Output is one thing to do on one connection: send Message, or close it if
// Message is nil. An output for a connection that is gone is dropped.
type Output struct {
	Node       wal.NodeID
	Connection uint64
	Message    Message
	Fault      error // why it is closed, if something is wrong with the acceptor's log
}

// FencedError stops a proposer for good: another one has written to the log.
type FencedError struct {
	Term wal.Term // the winning term
	Own  wal.Term // the last term this instance won
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("another proposer won term %d and has taken over the log; this one wrote in term %d and stops for good", e.Term, e.Own)
}

// NewProposer makes a proposer that knows the members but nothing of their logs.
func NewProposer(c ProposerConfig) *Proposer {
	p := &Proposer{config: c, systemID: c.SystemID}
	for _, set := range [2][]wal.Member{c.Membership.Members, c.Membership.NewMembers} {
		for _, m := range set {
			if p.peer(m.ID) == nil {
				p.peers = append(p.peers, peer{node: m.ID})
			}
		}
	}
	slices.SortFunc(p.peers, func(x, y peer) int { return cmp.Compare(x.node, y.node) })
	return p
}

// Connect begins a new connection to node and returns the greeting to send on
// it. An older connection to the node is forgotten. It returns nil for a node
// that is no member, and when the proposer has stopped.
func (p *Proposer) Connect(node wal.NodeID) *Greeting {
	x := p.peer(node)
	if x == nil || p.phase == Stopped {
		return nil
	}
	x.connect()
	return &Greeting{
		Version: Version, Timeline: p.config.Timeline, Creation: p.config.Creation,
		Proposer: p.config.ID, Connection: x.connection,
		SystemID: p.systemID, Membership: p.config.Membership,
	}
}

// Disconnect says that a connection has ended.
func (p *Proposer) Disconnect(node wal.NodeID, connection uint64) {
	if x := p.peer(node); x != nil && x.connection == connection && x.connected {
		x.disconnect()
	}
}

// Step takes a message that arrived on a connection. Messages of a connection
// that is not the node's newest, or was closed, are ignored.
func (p *Proposer) Step(node wal.NodeID, connection uint64, m Message) {
	x := p.peer(node)
	if x == nil || x.connection != connection || !x.connected || p.phase == Stopped {
		return
	}
	switch m := m.(type) {
	case *AcceptorGreeting:
		p.greeted(x, m)
	case *VoteResponse:
		p.voted(x, m)
	case *AppendResponse:
		p.appended(x, m)
	default:
		p.hangUp(x)
	}
}

// Tick is the passing of time, about 100 ms in production.
func (p *Proposer) Tick() {
	switch p.phase {
	case Waiting:
		if p.ticks--; p.ticks <= 0 {
			p.phase = Gathering
			p.gather()
		}
	case Probing, Campaigning:
		if p.ticks--; p.ticks <= 0 {
			p.retreat()
		}
	case Recovering:
		if p.donorAway() {
			p.ticks = min(p.ticks, donorTicksMax)
		}
		if p.ticks--; p.ticks <= 0 {
			p.retreat()
		}
	}
}

// Outputs returns what is to be done since the last call, in order. The slice
// is valid until the next call of any method.
func (p *Proposer) Outputs() []Output {
	out := p.out
	p.out = p.out[len(p.out):]
	return out
}

// Stop ends this proposer for good with err. It closes every connection.
func (p *Proposer) Stop(err error) {
	if p.phase == Stopped {
		return
	}
	p.phase, p.err = Stopped, err
	p.hangUpAll()
}

// Distrust says that node's copy proved to be damaged. Its connection is
// closed, and if this term's recovery leant on it another campaign follows.
func (p *Proposer) Distrust(node wal.NodeID) {
	x := p.peer(node)
	if x == nil || p.phase == Stopped {
		return
	}
	donor := p.phase == Recovering && p.election.Donor == node
	p.hangUp(x)
	if donor {
		p.retreat()
	}
}

// Handed says that the caller's log now ends at tail, which clients know of.
// It may be called once the phase has been Leading.
func (p *Proposer) Handed(tail wal.LSN) {
	p.handedOut = true
	p.tail = max(p.tail, tail)
}

func (p *Proposer) send(x *peer, m Message) {
	p.out = append(p.out, Output{Node: x.node, Connection: x.connection, Message: m})
}

func (p *Proposer) hangUp(x *peer) { p.reject(x, nil) }

// reject closes x's connection; fault, if not nil, is what people should hear of.
func (p *Proposer) reject(x *peer, fault error) {
	if x.connected {
		p.out = append(p.out, Output{Node: x.node, Connection: x.connection, Fault: fault})
		x.disconnect()
	}
}

func (p *Proposer) hangUpAll() {
	for i := range p.peers {
		p.hangUp(&p.peers[i])
	}
}

func (p *Proposer) peer(n wal.NodeID) *peer {
	for i := range p.peers {
		if p.peers[i].node == n {
			return &p.peers[i]
		}
	}
	return nil
}
