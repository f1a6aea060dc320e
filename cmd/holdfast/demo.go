package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// demoFlags are the settings of "demo".
type demoFlags struct {
	dir         string
	keep        bool
	size        cli.Bytes
	concurrency int
	duration    time.Duration
	asJSON      bool
	postgres    bool
}

func newDemo(a *app) *cobra.Command {
	f := demoFlags{size: 1 << 10}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Three acceptors, load, a failure, and the proof that nothing is missing",
		Long: `Start three acceptors on this machine, elect a proposer, drive load, kill one
acceptor half-way and bring it back, and prove that all three hold the same
bytes and that every acknowledged append is among them.`,
		Example: `  holdfast demo
  holdfast demo --keep
  holdfast demo --size 8KiB --duration 30s --dir ./demo --json
  holdfast demo --postgres`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.postgres {
				return f.runPostgres(cmd.Context(), a)
			}
			return f.run(cmd.Context(), a)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", "", "directory for data and logs, new or empty (default: a temporary one, removed at the end)")
	flags.BoolVar(&f.keep, "keep", false, "leave the acceptors running until interrupted, and keep the data")
	flags.Var(&f.size, "size", "bytes of an append")
	flags.IntVar(&f.concurrency, "concurrency", 64, "clients")
	flags.DurationVar(&f.duration, "duration", 10*time.Second, "how long to drive load")
	flags.BoolVar(&f.postgres, "postgres", false, "with a throw-away PostgreSQL: pgbench, kill -9, loss of its data, and a restore with nothing missing")
	jsonFlag(cmd, &f.asJSON)
	cli.Between(cmd, "size", &f.size, 1, 64<<20)
	cli.Between(cmd, "concurrency", &f.concurrency, 1, 10_000)
	cli.AtLeast(cmd, "duration", &f.duration, time.Second)
	return cmd
}

// demoResult is what "demo --json" prints.
type demoResult struct {
	Acked          int     `json:"acked_appends"`
	Missing        int     `json:"missing"`
	Identical      bool    `json:"replicas_identical"`
	AppendsPerSync float64 `json:"appends_per_sync"` // client appends per fdatasync of an acceptor
	workload.LoadResult
	Faults    []demoFault  `json:"faults"`
	CatchUpMS float64      `json:"catch_up_ms"` // from the end of the load until all three were equal
	End       wal.LSN      `json:"end"`
	SHA256    string       `json:"sha256"` // of the log, of all three
	Dir       string       `json:"dir,omitempty"`
	Acceptors []demoServer `json:"acceptors"`
}

type demoFault struct {
	AtSeconds float64 `json:"at_secs"`
	What      string  `json:"what"`
}

type demoServer struct {
	Node int    `json:"node"`
	Addr string `json:"addr"`
	HTTP string `json:"http"`
}

func (f *demoFlags) run(ctx context.Context, a *app) error {
	temporary, err := f.makeDir()
	if err != nil {
		return err
	}
	d := &demo{flags: f, app: a, began: time.Now(), passing: temporary && !f.keep}
	result, err := d.play(ctx)
	if d.fleet != nil {
		if err == nil && f.keep {
			d.next()
			<-ctx.Done()
		}
		err = errors.Join(err, d.fleet.Stop())
	}
	if err == nil && (result.Missing > 0 || !result.Identical) {
		err = cli.Errorf(cli.Corruption, "the proof failed")
	}
	switch {
	case d.passing && (err == nil || ctx.Err() != nil): // it went well, or nobody wanted to know
		return errors.Join(err, os.RemoveAll(f.dir))
	case err != nil: // what they hold is the evidence
		fmt.Fprintf(a.Err, "data and logs are left in %s\n", f.dir)
	}
	return err
}

// makeDir makes the directory and reports whether it is a temporary one.
func (f *demoFlags) makeDir() (temporary bool, err error) {
	if f.dir == "" {
		f.dir, err = os.MkdirTemp("", "holdfast-demo-")
		return true, err
	}
	entries, err := os.ReadDir(f.dir)
	if err == nil && len(entries) > 0 {
		return false, cli.Errorf(cli.Usage, "--dir %s is not empty: the demo begins with empty acceptors", f.dir)
	}
	return false, os.MkdirAll(f.dir, 0o755)
}

// print shows the result for a person.
func (d *demo) print(r *demoResult) {
	a := d.app
	paint := cli.Painter(a.Colour(a.Out))
	verdict := func(good bool, yes, no string) string {
		if good {
			return paint.Paint(cli.Green, yes)
		}
		return paint.Paint(cli.Red, no)
	}
	fmt.Fprintf(a.Out, "\n%d appends of %v by %d clients: %.0f appends/s, %.1f MB/s\n", r.Ops, &d.flags.size, r.Clients, r.OpsS, r.MBS)
	fmt.Fprintf(a.Out, "ack p50 %.2f ms, p99 %.2f ms; %.1f appends per fdatasync\n", r.P50MS, r.P99MS, r.AppendsPerSync)
	fmt.Fprintf(a.Out, "acknowledged %d, %s; all three replicas %s", r.Acked, verdict(r.Missing == 0, "missing 0", fmt.Sprintf("missing %d", r.Missing)),
		verdict(r.Identical, "identical", "differ"))
	if r.Identical {
		fmt.Fprintf(a.Out, " up to %v (sha256 %.16s…)", r.End, r.SHA256)
	}
	fmt.Fprintln(a.Out)
	if d.tmpfs {
		fmt.Fprintln(a.Out, paint.Paint(cli.Yellow, "note: the data was on a file system in memory, where fdatasync costs nothing; use --dir for a real disk"))
	}
	if !d.flags.keep {
		fmt.Fprintln(a.Out, "\nLook around in a running one: holdfast demo --keep")
	}
}

// next says where to look while the acceptors keep running.
func (d *demo) next() {
	a, addrs := d.app, strings.Join(d.fleet.Addresses(), ",")
	w := a.Err
	fmt.Fprintf(w, "\nThe acceptors keep running until you press Ctrl-C. In another terminal:\n\n")
	fmt.Fprintf(w, "  export HOLDFAST_ACCEPTORS=%s HOLDFAST_TIMELINE=%v\n", addrs, demoTimeline)
	fmt.Fprintf(w, "  holdfast status\n  holdfast audit --ack-log %s\n  holdfast wal read --hex | head\n\n", d.ackLog())
	for _, n := range d.fleet.Nodes {
		fmt.Fprintf(w, "  node %d  pid %d  http://%s/metrics  log %s\n", n.ID, n.PID(), n.HTTP, n.Log)
	}
}

func servers(f *fleet.Fleet) (list []demoServer) {
	for _, n := range f.Nodes {
		list = append(list, demoServer{n.ID, n.Addr, n.HTTP})
	}
	return list
}
