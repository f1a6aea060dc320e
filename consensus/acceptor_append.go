package consensus

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// append takes WAL or a heartbeat from the winner of the term (A5).
func (a *Acceptor) append(s StreamID, r *AppendRequest, b *Batch) {
	x := a.session(s)
	if x == nil || !a.ready(s, r.Generation, b) {
		return
	}
	if r.Term < a.state.Term {
		b.owe(s, r.Term)
		return
	}
	// A term of its own is not enough: a log that merely voted has not been
	// cut to the winner's yet, and bytes put behind a foreign tail would
	// make a log that nobody ever had.
	if r.Term > a.state.Term || a.state.History.LastTerm() != r.Term || a.state.VotedFor != x.origin.proposer {
		a.end(s, b, ReasonNotElected, 0, fmt.Sprintf("an append in term %d before its Elected: term here is %d, the history ends with term %d", r.Term, a.state.Term, a.state.History.LastTerm()))
		return
	}
	if len(r.Data) > 0 && !a.take(s, r, b) {
		return
	}
	b.commit = max(b.commit, r.Commit)
	b.horizon = max(b.horizon, r.Horizon)
	b.owe(s, r.Term)
}

// take adds r's data to b, or ends the stream.
func (a *Acceptor) take(s StreamID, r *AppendRequest, b *Batch) bool {
	end := r.Begin + wal.LSN(len(r.Data))
	switch {
	case len(r.Data) > a.config.RequestBytesMax:
		a.end(s, b, ReasonTooLarge, 0, fmt.Sprintf("%d bytes in one request, at most %d are allowed", len(r.Data), a.config.RequestBytesMax))
	case r.Begin > a.write:
		a.end(s, b, ReasonGap, a.write, fmt.Sprintf("append at %v leaves a gap: the log ends at %v", r.Begin, a.write))
	case r.Begin < a.write:
		a.end(s, b, ReasonRewrite, a.write, fmt.Sprintf("append at %v would rewrite: the log ends at %v", r.Begin, a.write))
	case end < r.Begin:
		a.end(s, b, ReasonTooLarge, a.write, fmt.Sprintf("append at %v of %d bytes passes the last LSN", r.Begin, len(r.Data)))
	case wal.Checksum(r.Data) != r.CRC:
		a.end(s, b, ReasonChecksum, a.write, fmt.Sprintf("the data of [%v, %v) does not have its checksum %08x", r.Begin, end, r.CRC))
	default:
		b.Term, b.Commit = r.Term, a.commit
		b.Appends = append(b.Appends, wal.Chunk{Begin: r.Begin, CRC: r.CRC, Data: r.Data})
		a.write = end
		return true
	}
	return false
}

// peerCommit raises the commit LSN to what another acceptor knows (A7): only
// a log with the same last term is known to hold the same bytes.
func (a *Acceptor) peerCommit(c *PeerCommit, b *Batch) {
	if a.health == wal.Healthy && c.Creation == a.state.Creation && c.LastLogTerm != 0 && c.LastLogTerm == a.visible().LastTerm() {
		b.commit = max(b.commit, c.Commit)
	}
}

// owe notes that stream s gets one AppendResponse after the batch.
func (b *Batch) owe(s StreamID, term wal.Term) {
	for i := range b.acks {
		if b.acks[i].stream == s {
			b.acks[i].term = term
			return
		}
	}
	b.acks = append(b.acks, ack{s, term})
}
