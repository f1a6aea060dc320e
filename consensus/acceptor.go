package consensus

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// AcceptorConfig is what an acceptor knows of itself.
type AcceptorConfig struct {
	Node            wal.NodeID
	Timeline        wal.TimelineID
	RequestBytesMax int // largest AppendRequest.Data, bytes
	WindowBytes     int // stated in the greeting, bytes
}

// Acceptor is one replica's part of the protocol for one timeline: it grants
// its vote, accepts the log of whoever won, and acknowledges what is durable.
// It is not safe for concurrent use.
type Acceptor struct {
	config AcceptorConfig

	// state is what the newest durable state frame holds. Its Commit and
	// Horizon are the saved ones; commit and horizon below may be ahead.
	state wal.State
	proof wal.LSN // the log's end as that state frame proves it

	// horizon <= commit <= flush <= write, at the end of every turn.
	horizon wal.LSN
	commit  wal.LSN
	flush   wal.LSN
	write   wal.LSN

	health   wal.Health
	sessions []session // open streams in the order of their greetings
	seen     []origin  // newest connection of recent proposers, oldest first
}

// session is a stream whose greeting was accepted.
type session struct {
	stream StreamID
	origin origin
}

// origin orders the streams of one proposer instance.
type origin struct {
	proposer   wal.ProposerID
	connection uint64
}

// seenMax bounds how many proposers' connection numbers are remembered after
// their streams are gone. Forgetting one costs no safety: what a stale stream
// says is still checked against term, history and write LSN.
const seenMax = 16

// NewAcceptor makes the machine from what storage recovered: the newest state
// and the end of the log, all of it durable.
func NewAcceptor(c AcceptorConfig, st wal.State, flush wal.LSN, health wal.Health) *Acceptor {
	return &Acceptor{
		config: c, state: st.Clone(), proof: flush,
		horizon: st.Horizon, commit: st.Commit, flush: flush, write: flush,
		health: health,
	}
}

// Status is a copy of what the machine knows.
type Status struct {
	Health   wal.Health
	Term     wal.Term
	VotedFor wal.ProposerID
	// LastLogTerm is the term of the newest byte this log can vouch for.
	LastLogTerm wal.Term
	Horizon     wal.LSN
	Commit      wal.LSN
	Flush       wal.LSN
	Write       wal.LSN
}

// Status returns the positions, the term and the health.
func (a *Acceptor) Status() Status {
	return Status{
		Health: a.health, Term: a.state.Term, VotedFor: a.state.VotedFor,
		LastLogTerm: a.visible().LastTerm(),
		Horizon:     a.horizon, Commit: a.commit, Flush: a.flush, Write: a.write,
	}
}

// State is the durable state with the present commit and horizon filled in:
// what the next state frame would hold.
func (a *Acceptor) State() wal.State {
	st := a.state
	st.Commit, st.Horizon = a.commit, a.horizon
	return st
}

// StoredLastTerm is the last term of the stored history, whether or not the
// log has reached it. A recovery read pinned to term N is served only while this is N (A6).
func (a *Acceptor) StoredLastTerm() wal.Term { return a.state.History.LastTerm() }

// visible is the stored history clipped to what the log can vouch for (A1).
func (a *Acceptor) visible() wal.History { return a.state.History.Visible(a.flush) }

// Step adds what message m, received on stream s, asks for to b. It returns
// false, and changes nothing, if b must be performed first. A message that
// breaks a rule ends its stream (b.Ends); later messages of a stream that has
// ended are ignored (A8).
func (a *Acceptor) Step(s StreamID, m Message, b *Batch) bool {
	if b.control {
		return false
	}
	if r, ok := m.(*AppendRequest); ok {
		a.append(s, r, b)
		return true
	}
	if c, ok := m.(*PeerCommit); ok {
		a.peerCommit(c, b)
		return true
	}
	if !b.Empty() {
		return false
	}
	b.control = true
	switch m := m.(type) {
	case *Greeting:
		a.greet(s, m, b)
	case *VoteRequest:
		a.vote(s, m, b)
	case *Elected:
		a.elected(s, m, b)
	default:
		a.end(s, b, ReasonProtocol, 0, fmt.Sprintf("an acceptor cannot take a %T", m))
	}
	return true
}

// Close forgets a stream that its client or the transport ended.
func (a *Acceptor) Close(s StreamID) { a.drop(s) }

// Refuse ends a stream for a reason that the shell found before Step, such as
// ReasonNoSpace. What the stream had queued is discarded like after any error.
func (a *Acceptor) Refuse(s StreamID, reason Reason, detail string, b *Batch) {
	a.end(s, b, reason, a.write, detail)
}

// Quiet asks for a state frame that proves the last data frames and saves
// commit and horizon. It does nothing if the newest state frame says all that
// already, if the copy is not healthy, or if b has other effects.
func (a *Acceptor) Quiet(b *Batch) {
	if a.health != wal.Healthy || !b.Empty() || a.proof == a.write && a.state.Commit == a.commit && a.state.Horizon == a.horizon {
		return
	}
	b.control = true
	a.save(b, a.State(), a.write)
}

// Flushed tells the machine that everything b describes is durable. It applies
// the effects, advances commit and horizon, and fills b.Replies.
func (a *Acceptor) Flushed(b *Batch) {
	if b.Save != nil {
		a.state, a.proof, a.write = *b.Save, b.SaveEnd, b.SaveEnd
	}
	a.flush = a.write
	a.commit = max(a.commit, min(b.commit, a.flush))
	a.horizon = max(a.horizon, min(b.horizon, a.commit))
	b.Replies = append(b.Replies, b.pending...)
	for len(b.slots) < len(b.acks) {
		b.slots = append(b.slots, AppendResponse{})
	}
	for i, k := range b.acks {
		r := &b.slots[i]
		*r = AppendResponse{Term: a.state.Term}
		if k.term == a.state.Term {
			r.Flush, r.Commit = a.flush, a.commit
		}
		b.Replies = append(b.Replies, Reply{k.stream, r})
	}
}

// Fail tells the machine that performing b failed. Nothing of b took effect as
// far as anyone is told; the machine is poisoned, forgets what was written
// but not flushed, and ends every stream (b.Ends replaces what b held).
func (a *Acceptor) Fail(b *Batch) {
	b.Reset()
	a.health = wal.Poisoned
	a.write = a.flush
	for _, x := range a.sessions {
		b.Ends = append(b.Ends, End{x.stream, a.unhealthy()})
	}
	a.sessions = a.sessions[:0]
}

// Quarantine marks the copy as damaged: it keeps answering greetings and ends
// every other request. Ends go to b.
func (a *Acceptor) Quarantine(b *Batch) {
	if a.health != wal.Healthy {
		return
	}
	a.health = wal.Quarantined
	for _, x := range a.sessions {
		b.Ends = append(b.Ends, End{x.stream, a.unhealthy()})
	}
	a.sessions = a.sessions[:0]
}

// save adds a state frame to b.
func (a *Acceptor) save(b *Batch, st wal.State, end wal.LSN) {
	b.Save, b.SaveEnd = &st, end
}

// end closes stream s with an error and forgets it.
func (a *Acceptor) end(s StreamID, b *Batch, reason Reason, expected wal.LSN, detail string) {
	a.drop(s)
	b.Ends = append(b.Ends, End{s, &Error{Reason: reason, Term: a.state.Term, Expected: expected, Detail: detail}})
}

func (a *Acceptor) unhealthy() *Error {
	e := &Error{Term: a.state.Term}
	switch a.health {
	case wal.Poisoned:
		e.Reason, e.Detail = ReasonPoisoned, "a write or sync failed here; this copy is not trusted until it has been opened again and read from disk"
	case wal.Quarantined:
		e.Reason, e.Detail = ReasonQuarantined, "this copy is damaged and must be repaired before it votes or stores again"
	default:
		e.Reason, e.Detail = ReasonLost, "this node is a member but its copy is gone; it must be rebuilt"
	}
	return e
}

// session returns the open session of stream s, nil if there is none.
func (a *Acceptor) session(s StreamID) *session {
	for i := range a.sessions {
		if a.sessions[i].stream == s {
			return &a.sessions[i]
		}
	}
	return nil
}

func (a *Acceptor) drop(s StreamID) {
	for i := range a.sessions {
		if a.sessions[i].stream == s {
			a.sessions = append(a.sessions[:i], a.sessions[i+1:]...)
			return
		}
	}
}
