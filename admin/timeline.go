package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Timeline is one acceptor's view of its copy of a timeline.
type Timeline struct {
	ID         wal.TimelineID
	Creation   wal.CreationID
	Node       wal.NodeID
	Membership wal.Membership
	SystemID   uint64
	First      wal.LSN // where the log began when it was created

	Health       wal.Health
	HealthReason string
	Damage       []Damage // known to it, the first of many
	Filled       bool     // it was lost and is filled for reading only; Health is Lost

	Term        wal.Term
	VotedFor    wal.ProposerID
	History     wal.History // as stored; it may reach beyond Flush
	LastLogTerm wal.Term

	Write, Flush, Commit, Horizon wal.LSN
	Oldest                        wal.LSN // first byte that can still be read there

	Segments   int
	DiskBytes  uint64
	InboxBytes uint64

	Proposer *Proposer // nil while no stream is open
	// LastContact is the age of the last message of any proposer; unknown (not
	// Contacted) if none came since the process started.
	Contacted   bool
	LastContact time.Duration
	Opened      bool // false: not opened since the process started

	Properties []byte // of the last election, opaque
}

// Proposer is who has an open stream.
type Proposer struct {
	ID         wal.ProposerID
	Connection uint64
	Addr       string
}

// textMax bounds text that a node sends for people, bytes.
const textMax = 1 << 10

func decodeTimeline(in *holdfastv1.TimelineStatus) (*Timeline, error) {
	t := &Timeline{
		Node: wal.NodeID(in.GetNodeId()), SystemID: in.GetSystemId(), First: wal.LSN(in.GetFirstLsn()),
		HealthReason: clip(in.GetHealthReason()),
		Term:         wal.Term(in.GetTerm()), LastLogTerm: wal.Term(in.GetLastLogTerm()),
		Write: wal.LSN(in.GetWriteLsn()), Flush: wal.LSN(in.GetFlushLsn()), Commit: wal.LSN(in.GetCommitLsn()),
		Horizon: wal.LSN(in.GetHorizonLsn()), Oldest: wal.LSN(in.GetOldestLsn()),
		Segments: int(in.GetSegments()), DiskBytes: in.GetDiskBytes(), InboxBytes: in.GetInboxBytes(),
		Opened: in.GetOpened(), Properties: in.GetProperties(),
		Damage: decodeDamage(nil, in.GetDamage()), Filled: in.GetFilled(),
	}
	var err error
	if t.ID, err = proto.DecodeTimelineID(in.GetTimeline()); err != nil {
		return nil, err
	}
	if t.Health, err = proto.DecodeHealth(in.GetHealth()); err != nil {
		return nil, err
	}
	if t.Creation, err = proto.DecodeCreationIDOrNone(in.GetCreationId()); err != nil {
		return nil, err
	}
	if in.GetMembership() != nil || t.Health == wal.Healthy {
		if t.Membership, err = proto.DecodeMembership(in.GetMembership()); err != nil {
			return nil, err
		}
	}
	if t.VotedFor, err = proto.DecodeProposerIDOrNone(in.GetVotedFor()); err != nil {
		return nil, err
	}
	if t.History, err = proto.DecodeHistory(in.GetHistory()); err != nil {
		return nil, err
	}
	if p := in.GetProposer(); p != nil {
		t.Proposer = &Proposer{Connection: p.GetConnection(), Addr: clip(p.GetAddr())}
		if t.Proposer.ID, err = proto.DecodeProposerIDOrNone(p.GetProposerId()); err != nil {
			return nil, err
		}
	}
	if age := in.GetLastContactAge(); age != nil {
		t.Contacted, t.LastContact = true, age.AsDuration()
	}
	return t, nil
}

func clip(s string) string { return s[:min(len(s), textMax)] }

// Timelines asks every acceptor for its copy of one timeline.
func (c *Client) Timelines(ctx context.Context, id wal.TimelineID) []Answer[*Timeline] {
	return ask(ctx, c, func(ctx context.Context, n *node) (*Timeline, error) { return n.timeline(ctx, id) })
}

func (n *node) timeline(ctx context.Context, id wal.TimelineID) (*Timeline, error) {
	r, err := n.GetTimeline(ctx, &holdfastv1.GetTimelineRequest{Timeline: id.String()})
	if err != nil {
		return nil, err
	}
	t, err := decodeTimeline(r.GetTimeline())
	if err == nil && t.ID != id {
		err = fmt.Errorf("it answers about %v", t.ID)
	}
	return t, err
}

// Best returns the answer that a proposer would begin from: the highest by
// (last log term, flush LSN) of the copies of one creation that may vote. It
// needs a quorum of the timeline's members, else ErrNoQuorum; if nobody knows
// the timeline it is ErrNotFound.
func Best(answers []Answer[*Timeline]) (Answer[*Timeline], error) {
	var best *Answer[*Timeline]
	for i, a := range answers {
		if a.Err != nil || a.Value.Health != wal.Healthy {
			continue
		}
		if best == nil || a.Value.LastLogTerm > best.Value.LastLogTerm ||
			a.Value.LastLogTerm == best.Value.LastLogTerm && a.Value.Flush > best.Value.Flush {
			best = &answers[i]
		}
	}
	if best == nil {
		if n := answered(answers); n >= consensus.Quorum(len(answers)) && n == countNotFound(answers) {
			return Answer[*Timeline]{}, ErrNotFound
		}
		return Answer[*Timeline]{}, noQuorum(answers)
	}
	has := func(id wal.NodeID) bool {
		for _, a := range answers {
			if a.Err == nil && a.Value.Health == wal.Healthy && a.Value.Node == id && a.Value.Creation == best.Value.Creation {
				return true
			}
		}
		return false
	}
	if !consensus.HasQuorum(&best.Value.Membership, has) {
		return *best, noQuorum(answers)
	}
	return *best, nil
}

func countNotFound[T any](answers []Answer[T]) int {
	n := 0
	for _, a := range answers {
		if errors.Is(a.Err, ErrNotFound) {
			n++
		}
	}
	return n
}

func noQuorum[T any](answers []Answer[T]) error {
	if err := failures(answers); err != nil {
		return fmt.Errorf("%w: %w", ErrNoQuorum, err)
	}
	return ErrNoQuorum
}
