package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/sim"
)

func newSim(a *app) *cobra.Command {
	var seed uint64
	var seeds, workers int
	var trace, asJSON bool
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run the real rooms in simulated worlds and check the invariants",
		Long: `Run the real consensus cores, drain loop and storage in worlds made from one number each:
a lying disk, a lossy network, power cuts, several proposers. Every invariant of
docs/evidence.md is checked after every event. A seed is always the same run; a
seed that fails is shortened to the fewest steps that still fail.`,
		Example: `  holdfast sim --seed 42 --trace
  holdfast sim --seeds 3000
  holdfast sim --seeds 200000 --json          # a night`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if seeds < 1 || workers < 1 || trace && seeds > 1 {
				return cli.Errorf(cli.Usage, "--seeds and --workers are at least 1, and --trace is for one seed")
			}
			if seeds == 1 && !asJSON {
				return a.simOne(seed, trace)
			}
			sum := sim.Lot{First: seed, Seeds: seeds, Workers: workers, Tries: 400, Done: a.simProgress(asJSON, seeds)}.Run(cmd.Context())
			if asJSON {
				if err := a.printJSON(sum); err != nil {
					return err
				}
			} else {
				fmt.Fprintf(a.Out, "%d seeds, %d events, %d elections, %d power cuts, %d run twice, %d failures\n",
					sum.Seeds, sum.Events, sum.Elections, sum.Crashes, sum.Twice, sum.Failures)
			}
			return simVerdict(sum.Failures)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&seed, "seed", 0, "the seed, or the first of several")
	f.IntVar(&seeds, "seeds", 1, "how many seeds to run")
	f.IntVar(&workers, "workers", runtime.GOMAXPROCS(0), "worlds at a time")
	f.BoolVar(&trace, "trace", false, "print every event of the one seed")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// simOne runs one seed and shows a failure shortened.
func (a *app) simOne(seed uint64, trace bool) error {
	out := io.Writer(nil)
	if trace {
		out = a.Out
	}
	r := sim.Run(seed, false, out)
	fmt.Fprintf(a.Out, "seed %d: %s\n%d events, %d elections, %d power cuts, %d bytes committed, trace %016x\n", seed, r.World, r.Events, r.Elections, r.Crashes, r.Committed, r.Digest)
	if r.Failure == nil {
		return nil
	}
	fmt.Fprintf(a.Out, "FAILED %v\n", r.Failure)
	a.simShow(sim.Shorten(seed, false, 400))
	return simVerdict(1)
}

// simShow prints a shortened failure.
func (a *app) simShow(r sim.Result) {
	fmt.Fprintf(a.Out, "seed %d, %s\n  %v\n  with nothing but these %d steps:\n", r.Seed, r.World, r.Failure, len(r.Script))
	for _, s := range r.Script {
		fmt.Fprintf(a.Out, "    %s\n", s)
	}
}

func (a *app) simProgress(quiet bool, seeds int) func(sim.Result) {
	n := 0
	return func(r sim.Result) {
		n++
		switch {
		case quiet:
		case r.Failure != nil:
			a.simShow(r)
		case n%1000 == 0:
			fmt.Fprintf(a.Err, "%d of %d seeds\n", n, seeds)
		}
	}
}

func simVerdict(failures int) error {
	if failures == 0 {
		return nil
	}
	return cli.Errorf(cli.Corruption, "an invariant was broken in %d of the seeds", failures)
}
