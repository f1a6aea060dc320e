package walfetch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Source is the log.
type Source interface {
	// View is a majority's answer; without a majority it is an error.
	View(ctx context.Context) (quorum.View, error)
	// ReadCommitted reads what is committed, in order and without a gap.
	ReadCommitted(ctx context.Context, creation wal.CreationID, begin, end wal.LSN, each func(wal.Chunk) error) error
}

// Mode says what the files are for.
type Mode int

const (
	// Recovery restores a cluster that shall go on as the primary: the log must be fenced.
	Recovery Mode = iota
	// Standby feeds a standby that streams what is not a whole file yet: that is absent.
	Standby
	// Live restores a copy as of now from a log that may be written on. A
	// cluster that was promoted from it is refused by the bridge later.
	Live
)

// Fetcher fetches files of one log.
type Fetcher struct {
	Source Source
	Mode   Mode
	Logger *zap.Logger // nil = none

	// Patience is how long a missing majority, or a tail that is not settled, is
	// waited for.
	Patience time.Duration
}

// Outcome is what Fetch did.
type Outcome int

const (
	Failed    Outcome = iota // nothing is proved: exit status 255
	Delivered                // the file is in its place and durable: 0
	Absent                   // a majority proves that there is no such file: 1
)

// ExitStatus is the exit status that PostgreSQL expects.
func (o Outcome) ExitStatus() int { return [...]int{255, 0, 1}[o] }

const retryPause = 200 * time.Millisecond

// unsettledError is a doubt that time may resolve.
type unsettledError struct{ reason string }

func (e *unsettledError) Error() string { return e.reason }

// Fetch puts the WAL or history file called name at target. With Failed there is an error.
func (f *Fetcher) Fetch(ctx context.Context, name, target string) (Outcome, error) {
	deadline := time.Now().Add(f.Patience)
	for {
		outcome, err := f.try(ctx, name, target)
		var unsettled *unsettledError
		if err == nil || !errors.As(err, &unsettled) && !errors.Is(err, admin.ErrNoQuorum) || time.Now().After(deadline) {
			return outcome, err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return Failed, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

func (f *Fetcher) try(ctx context.Context, name, target string) (Outcome, error) {
	v, err := f.Source.View(ctx)
	if err != nil {
		return Failed, err
	}
	if !v.Written {
		return Failed, errors.New("no PostgreSQL has written this timeline yet")
	}
	if tli, ok := pgwal.ParseHistoryFileName(name); ok {
		p := v.Properties
		p.Ancestry = v.Ancestry()
		if p.Ancestry.Last() != v.Properties.Ancestry.Last() {
			p.History = nil // it is of a TLI that the log has not reached
		}
		content, ok := p.HistoryFile(tli)
		if !ok {
			return Absent, nil
		}
		return deliver(target, int64(len(content)), func(write func([]byte) error) error { return write(content) })
	}
	part, err := f.plan(v, name)
	if err != nil || part.absent {
		if err == nil {
			return Absent, nil
		}
		return Failed, err
	}
	return f.segment(ctx, v, part, target)
}

// part is which bytes of the log a segment file holds; the rest of it is zeroes.
type part struct {
	absent     bool
	begin, end wal.LSN
	size       pgwal.SegmentBytes
}

// plan decides what name holds, or that it does not exist.
func (f *Fetcher) plan(v quorum.View, name string) (part, error) {
	size := v.Properties.Segment
	tli, begin, err := size.ParseFileName(name)
	if err != nil {
		return part{}, err
	}
	ancestry := v.Ancestry()
	i := ancestry.Find(tli)
	if i < 0 {
		return f.absent(v, name, "the log has no such timeline")
	}
	next := begin + wal.LSN(size)
	limit, historic := ancestry.End(i)
	if !historic {
		limit = v.End
	}
	switch {
	case next <= ancestry[i].Begin:
		return f.absent(v, name, "the timeline began later")
	case begin >= limit && historic:
		return part{absent: true}, nil // PostgreSQL left that timeline before: it cannot get there any more
	case begin >= limit:
		return f.absent(v, name, "it lies beyond the end")
	case begin < v.First && next > v.First:
		return part{}, fmt.Errorf("the log begins at %v, inside the file %s: make the timeline with the position that \"holdfast pg init\" finds", v.First, name)
	case next <= v.First:
		return part{}, fmt.Errorf("the log begins at %v, after the file %s: the base backup is older than the log", v.First, name)
	}
	p := part{begin: begin, end: min(next, limit), size: size}
	if historic && p.end <= v.Commit || next <= v.Commit {
		return p, nil
	}
	// The newest file, which the log does not fill.
	switch f.Mode {
	case Standby:
		return part{absent: true}, nil
	case Live:
		p.end = min(p.end, v.Commit)
		p.absent = p.end <= p.begin
		return p, nil
	}
	return p, f.settled(v, name)
}

// absent answers for a file of which the log, as it is now, has nothing.
func (f *Fetcher) absent(v quorum.View, name, why string) (part, error) {
	if f.Mode == Recovery {
		if err := f.settled(v, name); err != nil {
			return part{}, err
		}
	}
	f.logger().Info("absent", zap.String("file", name), zap.String("why", why), zap.Stringer("log_end", v.End))
	return part{absent: true}, nil
}

// settled reports why the log's end is not known for good.
func (f *Fetcher) settled(v quorum.View, name string) error {
	if !v.Properties.Fenced {
		return fmt.Errorf("%s: where the log ends is open as long as a primary may write it: run \"holdfast fence\" first (or use --standby or --live; see wal-fetch --help)", name)
	}
	if !v.Settled() {
		return &unsettledError{fmt.Sprintf("%s: the log ends at %v, but it is known to be committed up to %v only; run \"holdfast fence\" again", name, v.End, v.Commit)}
	}
	return nil
}

func (f *Fetcher) logger() *zap.Logger {
	if f.Logger == nil {
		return zap.NewNop()
	}
	return f.Logger
}

func (f *Fetcher) segment(ctx context.Context, v quorum.View, p part, target string) (Outcome, error) {
	return deliver(target, int64(p.size), func(write func([]byte) error) error {
		at := p.begin
		return f.Source.ReadCommitted(ctx, v.Creation, p.begin, p.end, func(c wal.Chunk) error {
			if c.Begin != at {
				return fmt.Errorf("the log continued at %v instead of %v", c.Begin, at)
			}
			at = c.End()
			return write(c.Data)
		})
	})
}
