package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// slowMain measures what one bad member costs the others: none, 500 ms added to
// each of its fdatasyncs, stopped, and catching up. "All well" is measured before
// each of the others, because the machine changes as well.
func slowMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("slow", flag.ExitOnError)
	size := fs.Int("P", 8192, "payload")
	clients := fs.Int("C", 16, "appends in flight")
	measure := fs.Duration("T", 4*time.Second, "measured time of a phase")
	rounds := fs.Int("rounds", 3, "how often")
	delay := fs.Duration("delay", 500*time.Millisecond, "added to each fdatasync of the slow member")
	behind := fs.Int("behind", 512, "MiB that the member lacks when its catch-up begins")
	refill := fs.Int("refill", 0, "catch-up bytes/s; 0 = the default")
	window := fs.Int("window", 64, "MiB of the proposer's window")
	parent := fs.String("dir", "", "where data goes")
	_ = fs.Parse(args)
	return inScratch(*parent, func(dir string) error {
		c, err := startCluster(dir, func(a *acceptor.Config) { a.SpareSegments = -1 })
		if err != nil {
			return err
		}
		x := slowBench{cluster: c, load: workload.Load{Size: *size, Concurrency: *clients, Duration: *measure, Warm: time.Second, Payloads: workload.NewPayloads(1)}, delay: *delay, behind: wal.LSN(*behind) << 20}
		x.p, err = c.open(ctx, wal.TimelineID{Tenant: "bench", Timeline: "slow"}, proposer.Config{WindowBytes: *window << 20, RefillBytesPerSecond: *refill})
		if err != nil {
			return errors.Join(err, c.stop())
		}
		defer func() { _ = x.p.Close() }()
		x.out = tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(x.out, "phase\tappends/s\tp50 ms\tp99 ms\tp50 against all well\tp99 against all well\twindow MiB\t")
		for range *rounds {
			if err := x.round(ctx); err != nil {
				return errors.Join(err, c.stop())
			}
		}
		return errors.Join(x.out.Flush(), c.stop())
	})
}

type slowBench struct {
	cluster *cluster
	p       *proposer.Proposer
	load    workload.Load
	delay   time.Duration
	behind  wal.LSN
	out     *tabwriter.Writer
	well    workload.LoadResult
}

func (x *slowBench) round(ctx context.Context) error {
	bad := x.cluster.members[2]
	if err := x.phase(ctx, "all well"); err != nil {
		return err
	}
	stall := bad.disk.Inject(vfs.Rule{Ops: vfs.OpDatasync, Effect: vfs.Stall{Wait: func(vfs.Op, string) { time.Sleep(x.delay) }}})
	err := x.phase(ctx, fmt.Sprintf("fdatasync +%v", x.delay))
	stall.Remove()
	if err = errors.Join(err, x.settle(ctx), x.phase(ctx, "all well")); err != nil {
		return err
	}
	if err := bad.stop(); err != nil {
		return err
	}
	if err := x.phase(ctx, "stopped"); err != nil {
		return err
	}
	if err := x.grow(ctx, x.p.Tail()+x.behind); err != nil {
		return err
	}
	if err := bad.start(); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // until its stream is there again
	if err := x.phase(ctx, "catching up"); err != nil {
		return err
	}
	for _, m := range x.p.Status().Members {
		if r := m.Refill; r != nil {
			fmt.Fprintf(os.Stderr, "catch-up: %v of %v, %.1f MB/s, ETA %v\n", r.At-r.Begin, r.End-r.Begin, r.BytesPerSecond/1e6, r.ETA.Round(time.Second))
		}
	}
	return x.settle(ctx)
}

// phase drives load and prints one line.
func (x *slowBench) phase(ctx context.Context, name string) error {
	var meter workload.Meter
	r, err := x.load.Drive(ctx, x.p, &meter)
	if err != nil {
		return err
	}
	if name == "all well" {
		x.well = r
	}
	st := x.p.Status()
	fmt.Fprintf(x.out, "%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t\n", name, r.OpsS, r.P50MS, r.P99MS, r.P50MS/x.well.P50MS, r.P99MS/x.well.P99MS, float64(st.Tail-st.WindowBegin)/(1<<20))
	return x.out.Flush()
}

// grow appends up to a position with all that the two others can take.
func (x *slowBench) grow(ctx context.Context, to wal.LSN) error {
	data := make([]byte, 1<<20)
	workload.NewPayloads(2).Fill(1, data)
	for x.p.Tail() < to {
		if _, _, err := x.p.Append(ctx, data); err != nil {
			return err
		}
	}
	return x.p.Wait(ctx, x.p.Tail())
}

// settle waits until every member has everything.
func (x *slowBench) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return workload.Settle(ctx, x.p)
}
