package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func newWAL(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wal",
		Short: "Read and export a timeline's bytes",
	}
	cmd.AddCommand(newWALExport(a), newWALRead(a), newWALTail(a))
	return cmd
}

// sourceFlags say whose bytes are read.
type sourceFlags struct {
	clientFlags
	acceptor string
	from, to cli.LSN
}

func (f *sourceFlags) addTo(cmd *cobra.Command) {
	f.addTimelineTo(cmd, true)
	cmd.Flags().StringVar(&f.acceptor, "acceptor", "", "read this one's own bytes, and nobody else's")
	cmd.Flags().Var(&f.from, "from", "first position (default: the oldest that is kept)")
}

// source is one acceptor and what it says of the timeline.
type source struct {
	addr     string
	timeline *admin.Timeline
}

// span settles what is read: sources, and [begin, end) of what is committed. A
// position that nobody has yet is an error, not an answer that ends early.
func (f *sourceFlags) span(ctx context.Context, c *admin.Client) (from []source, begin, end wal.LSN, err error) {
	if f.from.Given && f.to.Given && f.from.LSN > f.to.LSN {
		return nil, 0, 0, cli.Errorf(cli.Usage, "--from %v is above --to %v", f.from.LSN, f.to.LSN)
	}
	wait, cancel := f.question(ctx)
	defer cancel()
	for {
		if from, err = f.sources(ctx, c); err != nil {
			return nil, 0, 0, err
		}
		best := from[0].timeline
		begin, end = best.Oldest, best.Commit
		if f.from.Given {
			begin = f.from.LSN
		}
		if f.to.Given {
			end = f.to.LSN
		}
		last := max(begin, end)
		if last <= best.Commit {
			return from, begin, max(begin, end), nil
		}
		// What an acceptor holds it learns to be committed a moment later.
		soon := slices.ContainsFunc(from, func(s source) bool { return s.timeline.Flush >= last })
		if !soon || !pause(wait, commitPoll) {
			return nil, 0, 0, cli.Errorf(cli.NotFound, "%v is beyond what is committed: acceptor %s knows %v to be committed up to %v and holds it up to %v", last, from[0].addr, f.timeline.TimelineID, best.Commit, best.Flush)
		}
	}
}

// commitPoll is how often it is asked again whether bytes are committed now.
const commitPoll = 100 * time.Millisecond

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// sources asks who has the timeline: the acceptor that was named, or all, the
// one that knows most to be committed first.
func (f *sourceFlags) sources(ctx context.Context, c *admin.Client) ([]source, error) {
	ctx, cancel := f.question(ctx)
	defer cancel()
	var list []source
	answers := c.Timelines(ctx, f.timeline.TimelineID)
	var failed error
	for _, x := range answers {
		switch {
		case f.acceptor != "" && x.Addr != f.acceptor:
		case x.Err != nil:
			failed = fmt.Errorf("acceptor %s: %w", x.Addr, x.Err)
		default:
			list = append(list, source{x.Addr, x.Value})
		}
	}
	if len(list) == 0 && failed == nil {
		return nil, cli.Errorf(cli.Usage, "--acceptor %s is not among --acceptors %v", f.acceptor, &f.acceptors)
	}
	if len(list) == 0 {
		return nil, failed
	}
	slices.SortStableFunc(list, func(x, y source) int { return cmp.Compare(y.timeline.Commit, x.timeline.Commit) })
	return list, nil
}

// tailPause is how long a follower waits before it asks again after all have failed.
const tailPause = time.Second

// read streams committed bytes from begin on to yield, from the first source
// that has them; when one fails the next goes on where it stopped.
func (f *sourceFlags) read(ctx context.Context, c *admin.Client, from []source, begin, end wal.LSN, follow bool, yield func(wal.Chunk) error) (wal.LSN, error) {
	at := begin
	creation := from[0].timeline.Creation
	for {
		var failed error
		for _, s := range from {
			if s.timeline.Creation != creation {
				continue
			}
			var refused error
			reached, err := c.Read(ctx, s.addr, admin.ReadOptions{
				Timeline: f.timeline.TimelineID, Creation: creation, Begin: at, End: end, Follow: follow,
			}, func(x wal.Chunk) error {
				refused = yield(x)
				return refused
			})
			at = reached
			switch {
			case refused != nil:
				return at, refused
			case ctx.Err() != nil:
				return at, ctx.Err()
			case end != 0 && at == end, err == nil && end == 0 && !follow:
				return at, nil
			case err == nil:
				err = fmt.Errorf("its answer ended at %v", at)
			}
			failed = fmt.Errorf("acceptor %s: %w", s.addr, err)
		}
		if !follow {
			return at, failed
		}
		select {
		case <-ctx.Done():
			return at, ctx.Err()
		case <-time.After(tailPause):
		}
	}
}
