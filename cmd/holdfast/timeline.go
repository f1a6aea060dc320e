package main

import "github.com/spf13/cobra"

func newTimeline(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "timeline",
		Short: "Create, list, trim, repair, fill and delete timelines",
	}
	cmd.AddCommand(newTimelineCreate(a), newTimelineDelete(a), newTimelineFill(a), newTimelineList(a), newTimelineRepair(a), newTimelineTrim(a))
	return cmd
}
