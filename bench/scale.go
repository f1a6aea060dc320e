package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// scaleMain puts many timelines on one set of acceptors and spreads a fixed
// number of appends over some of them.
func scaleMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("scale", flag.ExitOnError)
	counts := intList{1, 100, 1000}
	fs.Var(&counts, "n", "timelines, comma-separated")
	shares := intList{1, 10, 100}
	fs.Var(&shares, "percent", "of them in use, comma-separated")
	clients := fs.Int("C", 64, "appends in flight, all together")
	writersMax := fs.Int("writers-max", 1000, "timelines in use at most: each has a proposer in this process")
	measure := fs.Duration("T", 4*time.Second, "measured time")
	binary := fs.String("holdfast", "bin/holdfast", "the binary")
	parent := fs.String("dir", "", "where data goes")
	_ = fs.Parse(args)
	fmt.Println("| timelines | in use | appends/s | ack p99 ms | fdatasyncs/s | appends/fdatasync | MB of an acceptor | its descriptors | its goroutines | start s | /metrics ms | /metrics KB |")
	fmt.Println("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, n := range counts {
		err := inScratch(*parent, func(dir string) error {
			f, err := fleet.Start(ctx, fleet.Config{Binary: *binary, Dir: dir, Nodes: 3, Args: []string{"--log-level", "warn"}})
			if err != nil {
				return err
			}
			x := scaleBench{fleet: f, clients: *clients, measure: *measure}
			err = x.create(ctx, n)
			if err == nil {
				err = x.restart(ctx)
			}
			done := map[int]bool{}
			for _, percent := range shares {
				if used := min(max(n*percent/100, 1), *writersMax); err == nil && !done[used] {
					done[used] = true
					err = x.use(ctx, n, used)
				}
			}
			return errors.Join(err, f.Stop())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type scaleBench struct {
	fleet   *fleet.Fleet
	clients int
	measure time.Duration
	start   time.Duration
}

func scaleTimeline(i int) wal.TimelineID {
	return wal.TimelineID{Tenant: "bench", Timeline: fmt.Sprintf("t%05d", i)}
}

// parallel calls do for 0 to n-1, 16 at a time, and returns the first error.
func parallel(n int, do func(i int) error) error {
	var wg sync.WaitGroup
	var first error
	var once sync.Once
	next := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return first
}

func (x *scaleBench) create(ctx context.Context, n int) error {
	a, err := admin.Dial(x.fleet.Addresses())
	if err != nil {
		return err
	}
	defer a.Close()
	return parallel(n, func(i int) error {
		_, _, err := a.Create(ctx, admin.Creation{Timeline: scaleTimeline(i)})
		return err
	})
}

// restart measures how long one acceptor takes from its start to being ready.
func (x *scaleBench) restart(ctx context.Context) error {
	n := x.fleet.Nodes[0]
	if err := n.Stop(); err != nil {
		return err
	}
	begin := time.Now()
	err := n.Start(ctx)
	x.start = time.Since(begin)
	return err
}

// use spreads the clients over used timelines and prints one line.
func (x *scaleBench) use(ctx context.Context, n, used int) error {
	writers := make([]*proposer.Proposer, used)
	defer func() {
		_ = parallel(used, func(i int) error {
			if writers[i] == nil {
				return nil
			}
			return writers[i].Close()
		})
	}()
	err := parallel(used, func(i int) (err error) {
		writers[i], err = proposer.Open(ctx, proposer.Config{Acceptors: x.fleet.Addresses(), Timeline: scaleTimeline(i), WindowBytes: 1 << 20})
		return err
	})
	if err != nil {
		return err
	}
	load := workload.Load{Size: 128, Concurrency: x.clients, Duration: x.measure, Warm: time.Second, Payloads: workload.NewPayloads(1)}
	var before, after float64
	load.Began = func() { before = x.syncs(ctx) }
	load.Ended = func() { after = x.syncs(ctx) }
	var m workload.Meter
	r, err := load.Drive(ctx, &inTurn{writers: writers}, &m)
	if err != nil {
		return err
	}
	node := x.fleet.Nodes[0]
	took, bytes, err := scrape(node.HTTP)
	if err != nil {
		return err
	}
	samples, err := node.Metrics(ctx)
	if err != nil {
		return err
	}
	descriptors, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", node.PID()))
	probe := fleet.Probe{Servers: []int{node.PID()}, Replicas: 1}
	probe.Begin()
	probe.End()
	syncs := (after - before) / x.measure.Seconds()
	fmt.Printf("| %d | %d | %.0f | %.1f | %.0f | %.1f | %.0f | %d | %.0f | %.2f | %.0f | %.0f |\n", n, used, r.OpsS, r.P99MS, syncs, 3*r.OpsS/syncs,
		probe.Cost(1, 1).PeakRSS, len(descriptors), samples["go_goroutines"], x.start.Seconds(), float64(took.Microseconds())/1e3, float64(bytes)/1e3)
	runtime.GC()
	return nil
}

func (x *scaleBench) syncs(ctx context.Context) (sum float64) {
	for _, n := range x.fleet.Nodes {
		if samples, err := n.Metrics(ctx); err == nil {
			sum += samples["holdfast_flush_seconds_count"]
		}
	}
	return sum
}

func scrape(addr string) (took time.Duration, bytes int64, err error) {
	begin := time.Now()
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return 0, 0, err
	}
	defer r.Body.Close()
	bytes, err = io.Copy(io.Discard, r.Body)
	return time.Since(begin), bytes, err
}
