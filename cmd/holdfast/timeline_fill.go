package main

import (
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// filled is what "timeline fill --json" prints.
type filled struct {
	Timeline wal.TimelineID `json:"timeline"`
	Addr     string         `json:"addr"`
	Oldest   wal.LSN        `json:"oldest_lsn"`
	Filled   wal.LSN        `json:"filled_lsn"`
	Commit   wal.LSN        `json:"commit_lsn"`
}

func newTimelineFill(a *app) *cobra.Command {
	var flags clientFlags
	var at string
	var from uint64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fill",
		Short: "Fill a copy that an acceptor has lost from its peers, for reading",
		Long: `Have an acceptor whose disk was wiped or replaced fetch what is committed from its
peers. The copy serves readers from then on. It never votes and takes no appends,
because this node may have acknowledged or voted for what it does not remember, and
it counts as absent in every quorum. Run it again after an interruption, or to
catch up: it goes on where it was.`,
		Example: `  holdfast timeline fill --acceptors a:7001,b:7001,c:7001 --timeline prod/main --acceptor c:7001
  holdfast timeline fill --acceptors a:7001,b:7001,c:7001 --timeline prod/main --acceptor c:7001 --from-node 2 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			ask, cancel := flags.question(cmd.Context())
			known, err := admin.Known(c.Timelines(ask, flags.timeline.TimelineID))
			cancel()
			if err != nil {
				return err
			}
			var reached, end atomic.Uint64
			progress := a.NewProgress(func() string {
				return fmt.Sprintf("filled up to %v of %v", wal.LSN(reached.Load()), wal.LSN(end.Load()))
			})
			f, err := c.Fill(cmd.Context(), at, known, wal.NodeID(from), func(f admin.Filled) {
				reached.Store(uint64(f.Filled))
				end.Store(uint64(f.Commit))
			})
			progress.Stop()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(filled{flags.timeline.TimelineID, at, f.Oldest, f.Filled, f.Commit})
			}
			_, err = fmt.Fprintf(a.Out, "%v on %s holds [%v, %v) for reading; it does not vote\n", flags.timeline.TimelineID, at, f.Oldest, f.Filled)
			return err
		},
	}
	flags.addTimelineTo(cmd, true)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().StringVar(&at, "acceptor", "", "the one that has lost its copy")
	_ = cmd.MarkFlagRequired("acceptor")
	cmd.Flags().Uint64Var(&from, "from-node", 0, "take the bytes from this node only; 0 = any that has them")
	return cmd
}
