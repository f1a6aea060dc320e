package admin

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Damage is a place on an acceptor's disk that does not hold what was written.
type Damage struct {
	// [Begin, End) is what cannot be served; empty if only bookkeeping was hit.
	Begin, End wal.LSN
	Segment    uint64
	Offset     uint64 // in the segment's file, bytes
	Reason     string
}

// damagesMax bounds what is kept of one acceptor's damage.
const damagesMax = 10_000

func decodeDamage(to []Damage, in []*holdfastv1.Damage) []Damage {
	for _, d := range in {
		if len(to) < damagesMax {
			to = append(to, Damage{wal.LSN(d.GetBeginLsn()), wal.LSN(d.GetEndLsn()), d.GetSegment(), d.GetOffset(), clip(d.GetReason())})
		}
	}
	return to
}

// Scrub has one acceptor read its whole copy of a timeline and verify it, at
// most bytesPerSecond fast (0: the acceptor's own default). progress, if set, hears of
// bytes done and in all about once a second. It returns the damage that was
// found, also with an error.
func (c *Client) Scrub(ctx context.Context, addr string, id wal.TimelineID, creation wal.CreationID, bytesPerSecond uint64, progress func(done, total uint64)) ([]Damage, error) {
	n, err := c.node(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := n.ScrubTimeline(ctx, &holdfastv1.ScrubTimelineRequest{
		Timeline: id.String(), CreationId: proto.EncodeCreationID(creation), BytesPerSecondMax: bytesPerSecond,
	})
	var damage []Damage
	err = receive(stream, err, func(r *holdfastv1.ScrubTimelineResponse) {
		damage = decodeDamage(damage, r.GetDamage())
		if progress != nil {
			progress(r.GetBytesDone(), r.GetBytesTotal())
		}
	})
	return damage, err
}

// Repair has one acceptor replace what is damaged of its quarantined copy by
// bytes of peers: of the peer from, or of any that fits if that is 0. It returns the
// ranges that were replaced; none if the copy is healthy.
func (c *Client) Repair(ctx context.Context, addr string, id wal.TimelineID, creation wal.CreationID, from wal.NodeID, progress func(done, total uint64)) ([]Damage, error) {
	n, err := c.node(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := n.RepairTimeline(ctx, &holdfastv1.RepairTimelineRequest{
		Timeline: id.String(), CreationId: proto.EncodeCreationID(creation), FromNodeId: uint64(from),
	})
	var repaired []Damage
	err = receive(stream, err, func(r *holdfastv1.RepairTimelineResponse) {
		repaired = decodeDamage(repaired, r.GetRepaired())
		if progress != nil {
			progress(r.GetBytesDone(), r.GetBytesTotal())
		}
	})
	return repaired, err
}

// Filled is how far a copy for reading is.
type Filled struct {
	Oldest, Filled wal.LSN // it holds [Oldest, Filled)
	Commit         wal.LSN // what its peers know to be committed
	From           wal.NodeID
}

// Fill has one acceptor fill the copy of a timeline that it has lost, for
// reading only, from its peers: from the peer from, or any if that is 0. known is what
// another acceptor says of the timeline. Called again after an error it goes
// on where it stopped.
func (c *Client) Fill(ctx context.Context, addr string, known *Timeline, from wal.NodeID, progress func(Filled)) (Filled, error) {
	n, err := c.node(addr)
	if err != nil {
		return Filled{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := n.FillTimeline(ctx, &holdfastv1.FillTimelineRequest{
		Timeline: known.ID.String(), CreationId: proto.EncodeCreationID(known.Creation),
		Membership: proto.EncodeMembership(known.Membership), FromNodeId: uint64(from),
	})
	var f Filled
	err = receive(stream, err, func(r *holdfastv1.FillTimelineResponse) {
		f = Filled{wal.LSN(r.GetOldestLsn()), wal.LSN(r.GetFilledLsn()), wal.LSN(r.GetCommitLsn()), wal.NodeID(r.GetFromNodeId())}
		if progress != nil {
			progress(f)
		}
	})
	return f, err
}

// Known returns the copy of a timeline that knows most to be committed, of
// those that are not lost; they must all be of one creation.
func Known(answers []Answer[*Timeline]) (*Timeline, error) {
	var known *Timeline
	for _, a := range answers {
		switch {
		case a.Err != nil || a.Value.Health == wal.Lost:
		case known == nil:
			known = a.Value
		case a.Value.Creation != known.Creation:
			return nil, fmt.Errorf("acceptors keep different creations of %v: %v and %v", known.ID, known.Creation, a.Value.Creation)
		case a.Value.Commit > known.Commit:
			known = a.Value
		}
	}
	if known != nil {
		return known, nil
	}
	if err := failures(answers); err != nil {
		return nil, err
	}
	return nil, errors.New("every acceptor has lost its copy")
}

// receive hands every message of a stream that was opened with err to each.
func receive[T any](stream interface{ Recv() (T, error) }, err error, each func(T)) error {
	for err == nil {
		var r T
		if r, err = stream.Recv(); err == nil {
			each(r)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return explain(err)
}
