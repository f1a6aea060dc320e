package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// spawnFlags are the settings of "load" for a cluster that it starts itself.
type spawnFlags struct {
	nodes int
	dir   string
	args  []string

	fleet *fleet.Fleet // nil: the cluster was there already
}

func (f *spawnFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.nodes, "spawn", 0, "start so many acceptors on this machine and measure what they cost, too")
	flags.StringVar(&f.dir, "spawn-dir", "", "directory for their data, on the disk to be measured (default: the temporary directory)")
	flags.StringArrayVar(&f.args, "spawn-arg", nil, "further argument of each acceptor; may be repeated")
	cli.Between(cmd, "spawn", &f.nodes, 0, spawnMax)
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		if f.nodes > 0 { // where they are and what the log is called is then ours to say
			for _, name := range []string{"acceptors", "timeline"} {
				delete(cmd.Flags().Lookup(name).Annotations, cobra.BashCompOneRequiredFlag)
			}
		}
	}
}

const spawnMax = 99

var spawnTimeline = wal.TimelineID{Tenant: "bench", Timeline: "load"}

// start starts the acceptors and points f at them. The result ends them and removes their data.
func (s *spawnFlags) start(ctx context.Context, f *loadFlags) (stop func() error, err error) {
	if len(f.acceptors) > 0 {
		return nil, cli.Errorf(cli.Usage, "--spawn starts acceptors, --acceptors names some: expected one of them")
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.dir, "holdfast-load-")
	if err != nil {
		return nil, err
	}
	// They share this machine: each gets its part of the processors.
	procs := strconv.Itoa(max(1, runtime.NumCPU()/s.nodes))
	args := append([]string{"--log-level", "warn", "--max-procs", procs}, s.args...)
	s.fleet, err = fleet.Start(ctx, fleet.Config{Binary: binary, Dir: dir, Nodes: s.nodes, Args: args})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	f.acceptors = s.fleet.Addresses()
	if f.timeline.TimelineID == (wal.TimelineID{}) {
		f.timeline.TimelineID = spawnTimeline
	}
	f.create = true
	return func() error { return errors.Join(s.fleet.Stop(), os.RemoveAll(dir)) }, nil
}

// probe reads what the load costs: of a cluster that is elsewhere only this process's part.
func (s *spawnFlags) probe(ctx context.Context) *fleet.Probe {
	p := &fleet.Probe{Client: true}
	if s.fleet == nil {
		return p
	}
	p.Replicas = len(s.fleet.Nodes)
	for _, n := range s.fleet.Nodes {
		p.Servers = append(p.Servers, n.PID())
	}
	p.Syncs = func() (sum float64, err error) {
		for _, n := range s.fleet.Nodes {
			samples, err := n.Metrics(ctx)
			if err != nil {
				return 0, err
			}
			syncs, ok := samples["holdfast_flush_seconds_count"]
			if !ok {
				return 0, fmt.Errorf("node %d counts no fdatasyncs", n.ID)
			}
			sum += syncs
		}
		return sum, nil
	}
	return p
}

// loadReport is what "load --json" prints of a closed loop. Its fields are those of the peers harness.
type loadReport struct {
	Version string `json:"version"`
	workload.LoadResult
	fleet.Cost
}
