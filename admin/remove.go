package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Delete removes every copy of a timeline. It needs all acceptors: a copy left
// behind would be in the way of the name for ever. Repeating it completes what
// an earlier one began. If no acceptor has it the error is ErrNotFound.
func (c *Client) Delete(ctx context.Context, id wal.TimelineID) error {
	found := c.Timelines(ctx, id)
	if countNotFound(found) == len(found) {
		return fmt.Errorf("%w: %v", ErrNotFound, id)
	}
	for _, a := range found {
		if a.Err != nil && !errors.Is(a.Err, ErrNotFound) {
			return fmt.Errorf("deletion needs every member: acceptor %s: %w", a.Addr, a.Err)
		}
	}
	for i, a := range found {
		if a.Err != nil {
			continue
		}
		_, err := c.nodes[i].DeleteTimeline(ctx, &holdfastv1.DeleteTimelineRequest{
			Timeline: id.String(), CreationId: proto.EncodeCreationID(a.Value.Creation),
		})
		if err = explain(err); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("acceptor %s: %w; the deletion is incomplete, repeat it", a.Addr, err)
		}
	}
	return nil
}

// Trimmed is what a trim gave back on one acceptor.
type Trimmed struct {
	Oldest   wal.LSN // first byte that can still be read
	Segments int
	Bytes    uint64
}

// Trim gives back the segments wholly below a position, on every acceptor that
// has a copy. Above a member's horizon that member refuses.
func (c *Client) Trim(ctx context.Context, id wal.TimelineID, before wal.LSN) []Answer[Trimmed] {
	return ask(ctx, c, func(ctx context.Context, n *node) (Trimmed, error) {
		t, err := n.timeline(ctx, id)
		if err != nil {
			return Trimmed{}, err
		}
		r, err := n.TrimTimeline(ctx, &holdfastv1.TrimTimelineRequest{
			Timeline: id.String(), CreationId: proto.EncodeCreationID(t.Creation), BeforeLsn: uint64(before),
		})
		if err != nil {
			return Trimmed{}, err
		}
		return Trimmed{wal.LSN(r.GetOldestLsn()), int(r.GetSegmentsRemoved()), r.GetBytesRemoved()}, nil
	})
}
