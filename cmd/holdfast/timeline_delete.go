package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
)

func newTimelineDelete(a *app) *cobra.Command {
	var flags clientFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete a timeline and its bytes from all acceptors",
		Example: `  holdfast timeline delete --acceptors a:7001,b:7001,c:7001 --timeline test/old
  holdfast timeline delete --acceptors a:7001,b:7001,c:7001 --timeline test/old --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.Confirm(yes, fmt.Sprintf("Delete %v and all its bytes from %v?", flags.timeline.TimelineID, &flags.acceptors)); err != nil {
				return err
			}
			c, err := flags.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, cancel := flags.question(cmd.Context())
			defer cancel()
			if err := c.Delete(ctx, flags.timeline.TimelineID); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "%v deleted\n", flags.timeline.TimelineID)
			return err
		},
	}
	flags.addTimelineTo(cmd, true)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cli.CommandLineOnly(cmd, "yes")
	return cmd
}
