package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// sizesMain: large records must take time in proportion, tiny ones must not be
// much dearer than small ones.
func sizesMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("sizes", flag.ExitOnError)
	records := intList{1_000_000, 10_000_000, 100_000_000}
	fs.Var(&records, "large", "large records, comma-separated")
	rounds := fs.Int("rounds", 3, "how often; the best counts")
	parent := fs.String("dir", "", "where data goes")
	_ = fs.Parse(args)
	return inScratch(*parent, func(dir string) error {
		c, err := startCluster(dir, nil)
		if err != nil {
			return err
		}
		id := wal.TimelineID{Tenant: "bench", Timeline: "sizes"}
		p, err := c.open(ctx, id, proposer.Config{})
		if err != nil {
			return errors.Join(err, c.stop())
		}
		err = errors.Join(tiny(ctx, p), large(ctx, c, p, id, records, *rounds), p.Close())
		return errors.Join(err, c.stop())
	})
}

func tiny(ctx context.Context, p *proposer.Proposer) error {
	rate := map[int][]row{}
	for range 3 {
		for _, size := range []int{1, 128} {
			load := workload.Load{Size: size, Concurrency: 64, Duration: 2 * time.Second, Warm: time.Second, Payloads: workload.NewPayloads(1)}
			var m workload.Meter
			r, err := load.Drive(ctx, p, &m)
			if err != nil {
				return err
			}
			rate[size] = append(rate[size], row{LoadResult: r})
		}
	}
	_, one, _ := spread(rate[1], opsS)
	_, small, _ := spread(rate[128], opsS)
	fmt.Printf("1 byte: %.0f appends/s, %.2f of the rate of 128 bytes (%.0f)\n", one, one/small, small)
	return nil
}

func large(ctx context.Context, c *cluster, p *proposer.Proposer, id wal.TimelineID, sizes intList, rounds int) error {
	a, err := admin.Dial(c.addresses())
	if err != nil {
		return err
	}
	defer a.Close()
	var lastAppend, lastRead time.Duration
	for i, size := range sizes {
		data := make([]byte, size)
		workload.NewPayloads(3).Fill(1, data)
		appended, read := time.Hour, time.Hour
		for range rounds {
			start := time.Now()
			begin, end, err := p.Append(ctx, data)
			if err == nil {
				err = p.Wait(ctx, end)
			}
			if err != nil {
				return err
			}
			appended = min(appended, time.Since(start))
			// A later append tells the acceptors what is committed.
			if _, end, err := p.Append(ctx, data[:1]); err != nil || p.Wait(ctx, end) != nil {
				return errors.Join(err, ctx.Err())
			}
			time.Sleep(20 * time.Millisecond)
			start = time.Now()
			got := 0
			_, err = a.Read(ctx, c.members[0].addr, admin.ReadOptions{Timeline: id, Begin: begin, End: end}, func(k wal.Chunk) error {
				got += len(k.Data)
				return nil
			})
			if err != nil || got != size {
				return fmt.Errorf("read %d of %d bytes: %w", got, size, err)
			}
			read = min(read, time.Since(start))
		}
		fmt.Printf("%d bytes: append %v, read %v", size, appended.Round(10*time.Microsecond), read.Round(10*time.Microsecond))
		if i > 0 {
			fmt.Printf("; %.1f and %.1f times the size before", float64(appended)/float64(lastAppend), float64(read)/float64(lastRead))
		}
		fmt.Println()
		lastAppend, lastRead = appended, read
	}
	return nil
}
