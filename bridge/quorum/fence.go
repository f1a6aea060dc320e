package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Fence is a log that has been shut.
type Fence struct {
	Term wal.Term // won by the fence; every older writer is refused from then on
	End  wal.LSN  // of the log; all of it is committed and on a majority
	// GivenUp is the begin of a record inside which the log ended; 0 if it ended
	// between two. It was closed, so that recovery reaches the log's end.
	GivenUp wal.LSN
	// Unclosed says why such a record could not be closed; PostgreSQL will then
	// fork below the log's end, and the bridge will refuse it.
	Unclosed error
}

// Fence shuts every writer out and settles the log's tail (rule R7): it wins an
// election, which brings a majority to the donor's end, gives up a record that
// was cut, marks the log as fenced, and returns when a majority says so. Until
// a server of a newer TLI attaches, nobody writes the log.
func (q *Quorum) Fence(ctx context.Context) (Fence, error) {
	var f Fence
	p, err := proposer.Open(ctx, proposer.Config{
		Acceptors: q.config.Acceptors, Timeline: q.config.Timeline, Logger: q.config.Logger,
		Decide: func(_ context.Context, e proposer.Election) (proposer.Decision, error) {
			d := proposer.Decision{Start: e.Start, SystemID: e.SystemID, Properties: e.Properties}
			f.Term = e.Term
			if len(e.History) == 0 {
				return d, nil
			}
			properties, err := pgwal.DecodeProperties(e.Properties)
			if err != nil {
				return d, err
			}
			properties.Fenced = true
			d.Properties, err = properties.Encode()
			return d, err
		},
	})
	if err != nil {
		return f, explain(err, q.config.Timeline)
	}
	defer p.Close()
	v, err := q.settled(ctx, func(v View) bool { return v.Term == f.Term && v.Commit >= p.Commit() })
	if err != nil {
		return f, err
	}
	f.End = v.End
	if v.Written {
		var closing []byte
		f.GivenUp, closing, f.Unclosed = q.closing(ctx, v)
		if len(closing) > 0 {
			_, end, err := p.Append(ctx, closing)
			if err == nil {
				err = p.Wait(ctx, end)
			}
			if err != nil {
				return f, fmt.Errorf("closing the record of %v: %w", f.GivenUp, err)
			}
			f.End = end
		}
	}
	if err := p.Close(); err != nil {
		return f, err
	}
	_, err = q.settled(ctx, func(v View) bool { return v.End == f.End && v.Term == f.Term })
	return f, err
}

// settled waits until a majority says that all of the log is committed, and that ok holds.
func (q *Quorum) settled(ctx context.Context, ok func(View) bool) (View, error) {
	for {
		v, err := q.View(ctx)
		if err == nil && v.Settled() && ok(v) {
			return v, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return v, errors.Join(fmt.Errorf("%w while the log settles (end %v, committed %v, term %d)", ctx.Err(), v.End, v.Commit, v.Term), err)
		}
	}
}

// closing finds the record inside which the log of v ends, and what closes it.
func (q *Quorum) closing(ctx context.Context, v View) (open wal.LSN, closing []byte, err error) {
	size := v.Properties.Segment
	for begin := size.Begin(v.End - 1); ; begin -= wal.LSN(size) {
		if begin < max(v.First, v.Oldest) {
			return 0, nil, fmt.Errorf("no whole record was found in [%v, %v)", begin+wal.LSN(size), v.End)
		}
		tail := pgwal.NewTail(size, begin)
		err := q.ReadCommitted(ctx, v.Creation, begin, v.End, func(c wal.Chunk) error { return tail.Feed(c.Data) })
		if err != nil {
			return 0, nil, err
		}
		if !tail.Complete() && begin > 0 {
			continue
		}
		open, _ = tail.Open()
		closing, err = tail.Closing(time.Now())
		return open, closing, err
	}
}
