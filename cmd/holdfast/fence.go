package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// fenced is what "fence --json" prints.
type fenced struct {
	Timeline wal.TimelineID `json:"timeline"`
	Term     wal.Term       `json:"term"`
	End      wal.LSN        `json:"end"`
	GivenUp  *wal.LSN       `json:"record_given_up"` // null: the log ended between two records
}

func newFence(a *app) *cobra.Command {
	var f clientFlags
	var wait time.Duration
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "fence",
		Short: "Shut every writer out of a log and settle its end, before recovery or failover",
		Long: `Win an election, so that no older bridge can get anything acknowledged any more,
bring a majority to the end of the log, and mark it as fenced. A record that was
cut at the end is closed the way PostgreSQL does it after a crash.

From then on no PostgreSQL writes the log until one attaches that was recovered
from it and promoted. What the old primary may still do without the log, such as
answering reads, is not stopped: stop it, or use the bridge's --on-fenced.`,
		Example: `  holdfast fence --acceptors a:7001,b:7001,c:7001 --timeline prod/main --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.Confirm(yes, fmt.Sprintf("Shut the writer of %v out?", &f.timeline)); err != nil {
				return err
			}
			q, err := f.openQuorum(quorum.Config{})
			if err != nil {
				return err
			}
			defer q.Close()
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			x, err := q.Fence(ctx)
			switch {
			case errors.Is(err, proposer.ErrNotFound), errors.Is(err, admin.ErrNotFound):
				return cli.WithCode(cli.NotFound, err)
			case errors.Is(err, context.DeadlineExceeded):
				return cli.WithCode(cli.NoQuorum, err)
			case err != nil:
				return err
			}
			out := fenced{Timeline: f.timeline.TimelineID, Term: x.Term, End: x.End}
			if x.GivenUp != 0 {
				out.GivenUp = &x.GivenUp
			}
			if asJSON {
				err = a.printJSON(out)
			} else {
				_, err = fmt.Fprintf(a.Out, "fenced in term %d; the log ends at %v\n", x.Term, x.End)
			}
			if err != nil || x.Unclosed == nil {
				return err
			}
			return cli.Errorf(cli.Degraded, "the log is fenced, but its last record could not be closed: %w", x.Unclosed)
		},
	}
	f.addTimelineTo(cmd, true)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "how long a majority is waited for")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cli.CommandLineOnly(cmd, "yes")
	return cmd
}
