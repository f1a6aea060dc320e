package quorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TrimmedError says that no acceptor has bytes that old any more.
type TrimmedError struct{ At, Oldest wal.LSN }

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("the acceptors no longer hold %v; the oldest they have is %v", e.At, e.Oldest)
}

// sources are the acceptors of one creation, the one that knows most to be committed first.
func (q *Quorum) sources(ctx context.Context, creation wal.CreationID) []admin.Answer[*admin.Timeline] {
	answers := q.client.Timelines(ctx, q.config.Timeline)
	answers = slices.DeleteFunc(answers, func(a admin.Answer[*admin.Timeline]) bool {
		return a.Err != nil || a.Value.Creation != creation || a.Value.Health == wal.Lost
	})
	slices.SortStableFunc(answers, func(a, b admin.Answer[*admin.Timeline]) int { return cmp.Compare(b.Value.Commit, a.Value.Commit) })
	return answers
}

// ReadCommitted reads [begin, end) of what is committed and calls each with
// successive pieces. It goes on with another acceptor when one fails; bytes that
// none of them knows to be committed are an error.
func (q *Quorum) ReadCommitted(ctx context.Context, creation wal.CreationID, begin, end wal.LSN, each func(wal.Chunk) error) error {
	at := begin
	var errs []error
	trimmed, oldest := 0, ^wal.LSN(0)
	sources := q.sources(ctx, creation)
	for _, a := range sources {
		if a.Value.Commit <= at {
			continue
		}
		var stop error
		next, err := q.client.Read(ctx, a.Addr, admin.ReadOptions{Timeline: q.config.Timeline, Creation: creation, Begin: at, End: end},
			func(c wal.Chunk) error { stop = each(c); return stop })
		if at = next; at == end {
			return nil
		}
		if stop != nil {
			return stop
		}
		if o, ok := admin.TrimmedAt(err); ok {
			trimmed, oldest = trimmed+1, min(oldest, o)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("acceptor %s: %w", a.Addr, err))
		}
	}
	if trimmed > 0 && trimmed == len(errs) {
		return &TrimmedError{at, oldest}
	}
	return fmt.Errorf("[%v, %v) cannot be read as committed from any acceptor: %w", at, end, errors.Join(errs...))
}

// How Follow deals with an acceptor that stands still: it may be cut off from
// the others, or just have nothing new.
const (
	followCheck = 2 * time.Second
	followPause = 200 * time.Millisecond
)

// Follow reads committed bytes from begin on until ctx ends or each fails. term
// is the term that wrote the piece. idle is called when there is nothing new,
// about every followCheck, with the highest commit position that anyone knows.
func (q *Quorum) Follow(ctx context.Context, creation wal.CreationID, begin wal.LSN,
	each func(c wal.Chunk, term wal.Term) error, idle func(commit wal.LSN) error) error {
	at := begin
	for skip := 0; ; skip++ {
		sources := q.sources(ctx, creation)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if len(sources) == 0 {
			select {
			case <-time.After(followPause):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		next, err := q.followOne(ctx, sources[skip%len(sources)].Addr, creation, at, each, idle)
		if next > at {
			skip = -1
		}
		at = next
		var stop *stopError
		switch {
		case errors.As(err, &stop):
			return stop.error
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if oldest, ok := admin.TrimmedAt(err); ok && skip+1 >= len(sources) {
			return &TrimmedError{at, oldest}
		}
		select {
		case <-time.After(followPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stopError is an error of the caller's function.
type stopError struct{ error }

// followOne follows one acceptor until it fails or falls behind another one.
func (q *Quorum) followOne(ctx context.Context, addr string, creation wal.CreationID, at wal.LSN,
	each func(wal.Chunk, wal.Term) error, idle func(wal.LSN) error) (wal.LSN, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type piece struct {
		chunk wal.Chunk
		term  wal.Term
	}
	pieces, taken := make(chan piece), make(chan error)
	ended := make(chan error, 1)
	go func() {
		var term wal.Term
		_, err := q.client.Read(ctx, addr, admin.ReadOptions{Timeline: q.config.Timeline, Creation: creation, Begin: at, Follow: true,
			Term: func(t wal.Term) { term = t }},
			func(c wal.Chunk) error {
				select {
				case pieces <- piece{c, term}:
					return <-taken
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		ended <- err
	}()
	finish := func(err error) (wal.LSN, error) {
		cancel(err)
		<-ended
		return at, err
	}
	tick := time.NewTicker(followCheck)
	defer tick.Stop()
	moved := true
	for {
		select {
		case p := <-pieces:
			err := each(p.chunk, p.term)
			taken <- err
			if err != nil {
				return finish(&stopError{err})
			}
			at, moved = p.chunk.End(), true
		case err := <-ended:
			return at, err
		case <-tick.C:
			if moved {
				moved = false
				continue
			}
			commit := at
			for _, a := range q.sources(ctx, creation) {
				commit = max(commit, a.Value.Commit)
			}
			if err := idle(commit); err != nil {
				return finish(&stopError{err})
			}
			if commit > at {
				return finish(fmt.Errorf("acceptor %s stands still at %v while %v is committed", addr, at, commit))
			}
		}
	}
}
