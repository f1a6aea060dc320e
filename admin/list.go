package admin

import (
	"context"
	"errors"

	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Summary is one line of a node's listing.
type Summary struct {
	ID        wal.TimelineID
	Creation  wal.CreationID
	Health    wal.Health
	Term      wal.Term
	Flush     wal.LSN
	Commit    wal.LSN
	DiskBytes uint64
}

// pagesMax bounds a listing, so that a node cannot make a client read for ever.
const pagesMax = 10_000

// List asks every acceptor for its timelines, all or one tenant's, ordered by name.
func (c *Client) List(ctx context.Context, tenant string) []Answer[[]Summary] {
	return ask(ctx, c, func(ctx context.Context, n *node) ([]Summary, error) {
		var list []Summary
		request := &holdfastv1.ListTimelinesRequest{Tenant: tenant}
		for range pagesMax {
			page, err := n.ListTimelines(ctx, request)
			if err != nil {
				return nil, err
			}
			for _, in := range page.GetTimelines() {
				s, err := decodeSummary(in)
				if err != nil {
					return nil, err
				}
				list = append(list, s)
			}
			if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
				return list, nil
			}
		}
		return nil, errors.New("its listing does not end")
	})
}

func decodeSummary(in *holdfastv1.TimelineSummary) (s Summary, err error) {
	s = Summary{
		Term: wal.Term(in.GetTerm()), Flush: wal.LSN(in.GetFlushLsn()), Commit: wal.LSN(in.GetCommitLsn()), DiskBytes: in.GetDiskBytes(),
	}
	if s.ID, err = proto.DecodeTimelineID(in.GetTimeline()); err != nil {
		return s, err
	}
	if s.Creation, err = proto.DecodeCreationIDOrNone(in.GetCreationId()); err != nil {
		return s, err
	}
	s.Health, err = proto.DecodeHealth(in.GetHealth())
	return s, err
}
