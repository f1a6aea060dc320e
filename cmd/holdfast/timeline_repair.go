package main

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// repaired is one acceptor's line of "timeline repair --json".
type repaired struct {
	Addr   string   `json:"addr"`
	Before string   `json:"health_before"`
	Ranges []damage `json:"repaired"`
	Error  string   `json:"error,omitempty"`
}

func newTimelineRepair(a *app) *cobra.Command {
	var flags clientFlags
	var only string
	var from uint64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Replace what is damaged of a quarantined copy by bytes of its peers",
		Long: `Have each acceptor whose copy is quarantined write it anew: what is undamaged from
its own disk, the rest from peers that hold the same bytes. Acceptors do that by
themselves; this asks for it now. The damaged files are kept beside the new ones,
with the reason. What no peer can give stays quarantined, and the error says what
it is. A copy whose votes may be lost is not repaired: see timeline fill.`,
		Example: `  holdfast timeline repair --acceptors a:7001,b:7001,c:7001 --timeline prod/main
  holdfast timeline repair --acceptors a:7001,b:7001,c:7001 --timeline prod/main --acceptor b:7001 --from-node 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			id := flags.timeline.TimelineID
			ask, cancel := flags.question(cmd.Context())
			answers := c.Timelines(ask, id)
			cancel()
			var done, total atomic.Uint64
			progress := a.NewProgress(func() string {
				return fmt.Sprintf("written %s of %s", cli.Bytes(done.Load()).Human(), cli.Bytes(total.Load()).Human())
			})
			defer progress.Stop()
			var lines []repaired
			var failed error
			seen := false
			for _, x := range answers {
				if only != "" && x.Addr != only {
					continue
				}
				seen = true
				line := repaired{Addr: x.Addr, Before: "unknown"}
				if err = x.Err; err == nil {
					line.Before = x.Value.Health.String()
				}
				if err == nil && x.Value.Health != wal.Healthy {
					var ranges []admin.Damage
					ranges, err = c.Repair(cmd.Context(), x.Addr, id, x.Value.Creation, wal.NodeID(from), func(d, t uint64) {
						done.Store(d)
						total.Store(t)
					})
					for _, r := range ranges {
						line.Ranges = append(line.Ranges, damageOf(r.Begin, r.End, fmt.Sprintf("%016x%s", r.Segment, segmentSuffix), r.Offset, r.Reason))
					}
				}
				if err != nil {
					line.Error = err.Error()
					failed = errors.Join(failed, fmt.Errorf("acceptor %s: %w", x.Addr, err))
				}
				lines = append(lines, line)
			}
			progress.Stop()
			if !seen {
				return cli.Errorf(cli.Usage, "--acceptor %s is not among --acceptors", only)
			}
			if asJSON {
				return errors.Join(failed, a.printJSON(map[string]any{"timeline": id, "acceptors": lines}))
			}
			for _, l := range lines {
				if l.Error == "" {
					fmt.Fprintf(a.Out, "%s  was %s, %d ranges replaced\n", l.Addr, l.Before, len(l.Ranges))
				}
				for _, d := range l.Ranges {
					fmt.Fprintf(a.Out, "  %s  %s\n", d.positions(), d.Reason)
				}
			}
			return failed
		},
	}
	flags.addTimelineTo(cmd, true)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().StringVar(&only, "acceptor", "", "repair only this one's copy (default: all that are quarantined)")
	cmd.Flags().Uint64Var(&from, "from-node", 0, "take the bytes from this node only; 0 = any that has them")
	return cmd
}
