package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// trimmed is one acceptor's line of "timeline trim --json".
type trimmed struct {
	Addr     string   `json:"addr"`
	Oldest   *wal.LSN `json:"oldest_lsn"` // null if it did not trim
	Segments int      `json:"segments_removed"`
	Bytes    uint64   `json:"bytes_removed"`
	Error    string   `json:"error,omitempty"`
}

func newTimelineTrim(a *app) *cobra.Command {
	var flags clientFlags
	var before cli.LSN
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "trim",
		Short: "Give back the segments below a position",
		Long: `Give back the segments that lie wholly below a position. It may not be above the
horizon: the position that every member has reached.`,
		Example: `  holdfast timeline trim --acceptors a:7001,b:7001,c:7001 --timeline prod/main --before 0/4000000 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.Confirm(yes, fmt.Sprintf("Remove the bytes of %v below %v for good?", flags.timeline.TimelineID, before.LSN)); err != nil {
				return err
			}
			c, err := flags.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, cancel := flags.question(cmd.Context())
			defer cancel()
			var lines []trimmed
			var failed error
			for _, x := range c.Trim(ctx, flags.timeline.TimelineID, before.LSN) {
				line := trimmed{Addr: x.Addr}
				if x.Err != nil {
					line.Error = x.Err.Error()
					failed = errors.Join(failed, fmt.Errorf("acceptor %s: %w", x.Addr, x.Err))
				} else {
					line.Oldest, line.Segments, line.Bytes = &x.Value.Oldest, x.Value.Segments, x.Value.Bytes
				}
				lines = append(lines, line)
			}
			if asJSON {
				return errors.Join(failed, a.printJSON(map[string]any{"timeline": flags.timeline.TimelineID, "acceptors": lines}))
			}
			for _, l := range lines {
				if l.Oldest != nil {
					fmt.Fprintf(a.Out, "%s  oldest %v, %d segments, %s given back\n", l.Addr, *l.Oldest, l.Segments, cli.Bytes(l.Bytes).Human())
				}
			}
			return failed
		},
	}
	flags.addTimelineTo(cmd, true)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().Var(&before, "before", "everything below this position may go")
	_ = cmd.MarkFlagRequired("before")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cli.CommandLineOnly(cmd, "yes")
	return cmd
}
