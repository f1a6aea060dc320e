package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// created is what "timeline create --json" prints.
type created struct {
	Timeline wal.TimelineID `json:"timeline"`
	Creation string         `json:"creation_id"`
	First    wal.LSN        `json:"first_lsn"`
	Created  bool           `json:"created"` // false: it was there already
	Members  []string       `json:"members"`
}

func newTimelineCreate(a *app) *cobra.Command {
	var flags clientFlags
	var first cli.LSN
	var systemID uint64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a timeline on all the acceptors that are named",
		Long: `Create a timeline. The acceptors that are named become its members: name an odd
number of them. All must be there. Repeating it changes nothing, or completes a
creation that reached only some of them.`,
		Example: `  holdfast timeline create --acceptors a:7001,b:7001,c:7001 --timeline prod/main
  holdfast timeline create --acceptors a:7001,b:7001,c:7001 --timeline prod/pg --first-lsn 0/1000000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, cancel := flags.question(cmd.Context())
			defer cancel()
			id, fresh, err := c.Create(ctx, admin.Creation{Timeline: flags.timeline.TimelineID, First: first.LSN, SystemID: systemID})
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(created{flags.timeline.TimelineID, id.String(), first.LSN, fresh, flags.acceptors})
			}
			what := "created"
			if !fresh {
				what = "was there already"
			}
			_, err = fmt.Fprintf(a.Out, "%v %s (creation %v, first LSN %v)\n", flags.timeline.TimelineID, what, id, first.LSN)
			return err
		},
	}
	flags.addTimelineTo(cmd, true)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().Var(&first, "first-lsn", "where the log begins (default 0/0)")
	cmd.Flags().Uint64Var(&systemID, "system-id", 0, "identifier of the database that will write; 0 = any")
	return cmd
}
