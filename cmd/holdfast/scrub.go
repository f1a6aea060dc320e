package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// scrubbed is one copy of a timeline in "scrub --json".
type scrubbed struct {
	Where    string   `json:"where"` // an acceptor's address, or a directory
	Timeline string   `json:"timeline"`
	Bytes    uint64   `json:"bytes"` // that were read
	Damage   []damage `json:"damage"`
	Error    string   `json:"error,omitempty"`

	err error
}

// damage is one damaged place. Begin and End are null where only bookkeeping was hit.
type damage struct {
	Begin  *wal.LSN `json:"begin_lsn"`
	End    *wal.LSN `json:"end_lsn"`
	File   string   `json:"file"`
	Offset uint64   `json:"offset"`
	Reason string   `json:"reason"`
}

func damageOf(begin, end wal.LSN, file string, offset uint64, reason string) damage {
	d := damage{File: file, Offset: offset, Reason: reason}
	if begin < end {
		d.Begin, d.End = &begin, &end
	}
	return d
}

func (d damage) positions() string {
	if d.Begin == nil {
		return "no positions"
	}
	return fmt.Sprintf("[%v, %v)", *d.Begin, *d.End)
}

// scrubReport is what "scrub --json" prints.
type scrubReport struct {
	Copies  []*scrubbed `json:"copies"`
	Bytes   uint64      `json:"bytes"`
	Damaged int         `json:"damaged"` // places
}

func newScrub(a *app) *cobra.Command {
	var flags clientFlags
	var rate cli.Bytes
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "scrub [DIR]",
		Short: "Verify every frame of what is on a disk, and show what is damaged",
		Long: `Read every frame that counts, past the page cache, and verify it. With DIR, a data
directory or one timeline's that no acceptor is using, that is done here, offline,
and nothing is changed. With --acceptors each acceptor does it with its own copies
while it goes on working: damage that it finds quarantines the copy, which is then
repaired from peers. Exit code 6 says that something is damaged.`,
		Example: `  holdfast scrub /var/lib/holdfast
  holdfast scrub --acceptors a:7001,b:7001,c:7001
  holdfast scrub --acceptors b:7001 --timeline prod/main --bytes-per-second 200MiB --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (len(flags.acceptors) > 0) {
				return cli.Errorf(cli.Usage, "name either a directory or --acceptors")
			}
			var s scrubber
			progress := a.NewProgress(func() string {
				return "verified " + cli.Bytes(s.read.Load()).Human()
			})
			var err error
			if len(args) == 1 {
				err = s.offline(cmd.Context(), args[0], int64(rate))
			} else {
				err = s.online(cmd.Context(), &flags, uint64(rate))
			}
			progress.Stop()
			if err != nil {
				return err
			}
			return s.finish(a, asJSON)
		},
	}
	cmd.Flags().Var(&flags.acceptors, "acceptors", "where to ask, comma-separated")
	cmd.Flags().DurationVar(&flags.timeout, "timeout", questionWait, "how long an acceptor may take to answer a question")
	cmd.Flags().Var(&flags.timeline, "timeline", "which log, as tenant/name (default: all)")
	cmd.Flags().Var(&rate, "bytes-per-second", "how fast to read each disk (default 64MiB)")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// scrubRate is the pace when none was asked for, bytes per second.
const scrubRate = 64 << 20

// scrubber collects what is found.
type scrubber struct {
	read atomic.Uint64

	mu     sync.Mutex
	report scrubReport
}

func (s *scrubber) add(x *scrubbed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.err != nil {
		x.Error = x.err.Error()
	}
	s.report.Copies = append(s.report.Copies, x)
	s.report.Bytes += x.Bytes
	s.report.Damaged += len(x.Damage)
}

// online has every acceptor scrub its copies, all acceptors at the same time.
func (s *scrubber) online(ctx context.Context, flags *clientFlags, rate uint64) error {
	c, err := flags.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	ask, cancel := flags.question(ctx)
	defer cancel()
	var group sync.WaitGroup
	for _, x := range c.List(ask, "") {
		if x.Err != nil {
			s.add(&scrubbed{Where: x.Addr, err: x.Err})
			continue
		}
		group.Go(func() {
			for _, t := range x.Value {
				if flags.timeline.String() == "" || t.ID == flags.timeline.TimelineID {
					s.add(s.copy(ctx, c, x.Addr, t, rate))
				}
			}
		})
	}
	group.Wait()
	if len(s.report.Copies) == 0 {
		return fmt.Errorf("%w: %s", admin.ErrNotFound, flags.timeline.String())
	}
	return ctx.Err()
}

func (s *scrubber) copy(ctx context.Context, c *admin.Client, addr string, t admin.Summary, rate uint64) *scrubbed {
	x := &scrubbed{Where: addr, Timeline: t.ID.String()}
	found, err := c.Scrub(ctx, addr, t.ID, t.Creation, rate, func(done, _ uint64) {
		s.read.Add(done - x.Bytes)
		x.Bytes = done
	})
	for _, d := range found {
		x.Damage = append(x.Damage, damageOf(d.Begin, d.End, fmt.Sprintf("%016x%s", d.Segment, segmentSuffix), d.Offset, d.Reason))
	}
	x.err = err
	return x
}

// finish prints the report and decides how it ends.
func (s *scrubber) finish(a *app, asJSON bool) error {
	r := &s.report
	if asJSON {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else if err := r.print(a); err != nil {
		return err
	}
	if r.Damaged > 0 {
		return cli.Errorf(cli.Corruption, "%d damaged places", r.Damaged)
	}
	var all error
	for _, x := range r.Copies {
		if x.err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", strings.TrimSpace(x.Where+" "+x.Timeline), x.err))
		}
	}
	return all
}

func (r *scrubReport) print(a *app) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHERE\tTIMELINE\tREAD\tVERDICT")
	paint := cli.Painter(a.Colour(a.Out))
	for _, x := range r.Copies {
		verdict := "ok"
		switch {
		case len(x.Damage) > 0:
			verdict = paint.Paint(cli.Red, fmt.Sprintf("%d damaged places", len(x.Damage)))
		case x.err != nil:
			verdict = "unknown"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Where, or(x.Timeline, "unknown"), cli.Bytes(x.Bytes).Human(), verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, x := range r.Copies {
		for _, d := range x.Damage {
			fmt.Fprintf(a.Out, "%s  %s  %s  %s at offset %d: %s\n", x.Where, x.Timeline, d.positions(), d.File, d.Offset, d.Reason)
		}
	}
	return nil
}

// pace waits until as much may have been read since begin.
func pace(ctx context.Context, begin time.Time, bytes, perSecond int64) error {
	timer := time.NewTimer(time.Until(begin.Add(time.Duration(float64(bytes) / float64(perSecond) * float64(time.Second)))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
