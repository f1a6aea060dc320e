package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// inboxMain streams bulk WAL through inboxes of several sizes: the rate, and the
// share of time for which a stream was not read because its inbox was full.
func inboxMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("inbox", flag.ExitOnError)
	sizes := intList{256, 1024, 16384, 65536}
	fs.Var(&sizes, "KiB", "inbox sizes, comma-separated")
	size := fs.Int("P", 128<<10, "payload")
	clients := fs.Int("C", 128, "appends in flight")
	measure := fs.Duration("T", 3*time.Second, "measured time")
	rounds := fs.Int("rounds", 3, "how often")
	parent := fs.String("dir", "", "where data goes")
	_ = fs.Parse(args)
	rates, waits := map[int][]row{}, map[int][]row{}
	for range *rounds {
		for _, kib := range sizes {
			err := inScratch(*parent, func(dir string) error {
				c, err := startCluster(dir, func(a *acceptor.Config) {
					a.InboxBytes, a.SpareSegments, a.RetainBytes = kib<<10, -1, 256<<20
				})
				if err != nil {
					return err
				}
				defer func() { _ = c.stop() }()
				p, err := c.open(ctx, wal.TimelineID{Tenant: "bench", Timeline: "inbox"}, proposer.Config{})
				if err != nil {
					return err
				}
				load := workload.Load{Size: *size, Concurrency: *clients, Duration: *measure, Warm: time.Second, Payloads: workload.NewPayloads(1)}
				var before, after float64
				load.Began = func() { before = c.sum("holdfast_inbox_wait_seconds", histogramSeconds) }
				load.Ended = func() { after = c.sum("holdfast_inbox_wait_seconds", histogramSeconds) }
				var m workload.Meter
				r, err := load.Drive(ctx, p, &m)
				rates[kib] = append(rates[kib], row{LoadResult: r})
				r.OpsS = (after - before) / measure.Seconds() / float64(len(c.members))
				waits[kib] = append(waits[kib], row{LoadResult: r})
				return errors.Join(err, p.Close())
			})
			if err != nil {
				return err
			}
		}
	}
	fmt.Println("| inbox KiB | MB/s (lowest-highest) | readers waiting | ack p99 ms |\n|--:|--:|--:|--:|")
	for _, kib := range sizes {
		low, rate, high := spread(rates[kib], func(r row) float64 { return r.MBS })
		_, wait, _ := spread(waits[kib], opsS)
		_, tail, _ := spread(rates[kib], p99)
		fmt.Printf("| %d | %.0f (%.0f-%.0f) | %.0f %% | %.1f |\n", kib, rate, low, high, 100*wait, tail)
	}
	return nil
}
