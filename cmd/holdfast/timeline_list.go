package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// listed is one timeline of "timeline list --json".
type listed struct {
	Timeline wal.TimelineID `json:"timeline"`
	Copies   []listedCopy   `json:"copies"`
}

type listedCopy struct {
	Addr      string   `json:"addr"`
	Creation  string   `json:"creation_id"`
	Health    string   `json:"health"`
	Term      wal.Term `json:"term"`
	Flush     wal.LSN  `json:"flush_lsn"`
	Commit    wal.LSN  `json:"commit_lsn"`
	DiskBytes uint64   `json:"disk_bytes"`
}

func newTimelineList(a *app) *cobra.Command {
	var flags clientFlags
	var tenant string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List timelines and who has a copy",
		Example: `  holdfast timeline list --acceptors a:7001,b:7001,c:7001
  holdfast timeline list --acceptors a:7001,b:7001,c:7001 --tenant prod --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, cancel := flags.question(cmd.Context())
			defer cancel()
			answers := c.List(ctx, tenant)
			list, unknown := mergeLists(answers)
			for _, line := range unknown {
				fmt.Fprintln(a.Err, "holdfast: warning:", line)
			}
			if asJSON {
				err = a.printJSON(map[string]any{"timelines": list, "unknown": unknown})
			} else {
				w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "TIMELINE\tCOPIES\tTERM\tCOMMIT\tFLUSH\tDISK\tHEALTH")
				for _, t := range list {
					best := slices.MaxFunc(t.Copies, func(x, y listedCopy) int { return cmp.Compare(x.Flush, y.Flush) })
					fmt.Fprintf(w, "%v\t%d of %d\t%d\t%v\t%v\t%s\t%s\n", t.Timeline, len(t.Copies), len(answers), best.Term,
						best.Commit, best.Flush, cli.Bytes(best.DiskBytes).Human(), t.health())
				}
				err = w.Flush()
			}
			if err != nil {
				return err
			}
			if len(answers)-len(unknown) < consensus.Quorum(len(answers)) {
				return admin.ErrNoQuorum
			}
			return nil
		},
	}
	flags.addTo(cmd)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().StringVar(&tenant, "tenant", "", "only this tenant's timelines")
	return cmd
}

// health names the copies that are not well, or says ok.
func (t *listed) health() string {
	var sick []string
	for _, c := range t.Copies {
		if c.Health != wal.Healthy.String() {
			sick = append(sick, c.Health+" at "+c.Addr)
		}
	}
	return or(strings.Join(sick, ", "), wal.Healthy.String())
}

// mergeLists joins the acceptors' listings by name; unknown names those that did not answer.
func mergeLists(answers []admin.Answer[[]admin.Summary]) (list []listed, unknown []string) {
	copies := map[string]*listed{}
	unknown = []string{}
	for _, x := range answers {
		if x.Err != nil {
			unknown = append(unknown, fmt.Sprintf("acceptor %s: %v", x.Addr, x.Err))
			continue
		}
		for _, s := range x.Value {
			name := s.ID.String()
			if copies[name] == nil {
				copies[name] = &listed{Timeline: s.ID}
			}
			copies[name].Copies = append(copies[name].Copies, listedCopy{
				x.Addr, s.Creation.String(), s.Health.String(), s.Term, s.Flush, s.Commit, s.DiskBytes,
			})
		}
	}
	list = []listed{}
	for _, name := range slices.Sorted(maps.Keys(copies)) {
		list = append(list, *copies[name])
	}
	return list, unknown
}
