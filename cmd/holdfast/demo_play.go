package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

var demoTimeline = wal.TimelineID{Tenant: "demo", Timeline: "main"}

const (
	demoNodes       = 3
	demoVictim      = 2               // index of the acceptor that is killed
	demoCatchUpWait = 2 * time.Minute // until all three are equal
	demoScrape      = time.Second
	syncsMetric     = "holdfast_flush_seconds_count"
)

// demo is one performance.
type demo struct {
	flags *demoFlags
	app   *app
	began time.Time
	tmpfs bool

	passing bool // the directory is removed at the end

	fleet    *fleet.Fleet
	proposer *proposer.Proposer
	progress *cli.Progress
	perSync  atomic.Uint64 // client appends per fdatasync of late, times 10
	faults   []demoFault
}

func (d *demo) ackLog() string { return filepath.Join(d.flags.dir, "acks.log") }

// play does it all and prints the result. The acceptors are left running.
func (d *demo) play(ctx context.Context) (*demoResult, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d.tmpfs = inMemory(d.flags.dir)
	fmt.Fprintf(d.app.Err, "starting three acceptors in %s\n", d.flags.dir)
	if d.fleet, err = fleet.Start(ctx, fleet.Config{Binary: binary, Dir: d.flags.dir, Nodes: demoNodes}); err != nil {
		return nil, err
	}
	client, err := admin.Dial(d.fleet.Addresses())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if _, _, err := client.Create(ctx, admin.Creation{Timeline: demoTimeline}); err != nil {
		return nil, err
	}
	d.proposer, err = proposer.Open(ctx, proposer.Config{Acceptors: d.fleet.Addresses(), Timeline: demoTimeline})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(d.app.Err, "elected in term %d\n", d.proposer.Status().Term)
	result, err := d.drive(ctx)
	if err == nil {
		err = d.catchUp(ctx, result)
	}
	if err = errors.Join(err, d.proposer.Close()); err != nil {
		return nil, err
	}
	if err := d.prove(ctx, client, result); err != nil {
		return nil, err
	}
	if d.flags.asJSON {
		return result, d.app.printJSON(result)
	}
	d.print(result)
	return result, nil
}

// drive loads the timeline while one acceptor is killed and comes back.
func (d *demo) drive(ctx context.Context) (*demoResult, error) {
	seed := rand.Uint64()
	acks, err := workload.OpenAckLog(d.ackLog(), demoTimeline, seed)
	if err != nil {
		return nil, err
	}
	load := workload.Load{
		Size: int(d.flags.size), Concurrency: d.flags.concurrency, Duration: d.flags.duration,
		Payloads: workload.NewPayloads(seed), Acks: acks,
	}
	var meter workload.Meter
	rates := workload.NewRates(&meter)
	syncsBefore := d.syncs(ctx)
	d.progress = d.app.NewEagerProgress(func() string { return d.line(rates.Next()) })
	side, endSide := context.WithCancel(ctx)
	faults := make(chan error, 1)
	scraped := make(chan struct{})
	d.began = time.Now()
	go func() { faults <- d.breakOne(side) }()
	go func() { defer close(scraped); d.watchSyncs(side, &meter) }()
	loaded, err := load.Drive(ctx, d.proposer, &meter)
	if err == nil {
		err = <-faults // the acceptor must be back, however short the load was
		faults <- nil
	}
	endSide()
	err = errors.Join(err, <-faults)
	<-scraped
	d.progress.Stop()
	if err = errors.Join(err, acks.Close()); err != nil {
		return nil, err
	}
	result := &demoResult{LoadResult: loaded, Faults: d.faults, Acceptors: servers(d.fleet)}
	if !d.passing {
		result.Dir = d.flags.dir
	}
	if syncs := d.syncs(ctx) - syncsBefore; syncs > 0 {
		result.AppendsPerSync = float64(loaded.Ops) / syncs
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return result, nil
}

// breakOne kills an acceptor half-way and starts it again a fifth later.
func (d *demo) breakOne(ctx context.Context) error {
	victim := d.fleet.Nodes[demoVictim]
	if !sleep(ctx, d.flags.duration/2) {
		return nil
	}
	victim.Kill()
	d.fault("acceptor %d killed (kill -9); commits go on with two of three", victim.ID)
	sleep(ctx, d.flags.duration/5)
	if err := victim.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	d.fault("acceptor %d is back; it is filled from another acceptor's disk", victim.ID)
	return nil
}

func (d *demo) fault(format string, args ...any) {
	at := time.Since(d.began).Seconds()
	what := fmt.Sprintf(format, args...)
	d.faults = append(d.faults, demoFault{at, what})
	d.progress.Say("%5.1f s  %s", at, what)
}

// watchSyncs keeps the figure of the progress line current.
func (d *demo) watchSyncs(ctx context.Context, m *workload.Meter) {
	acked, syncs := m.Acked(), d.syncs(ctx)
	for sleep(ctx, demoScrape) {
		a, s := m.Acked(), d.syncs(ctx)
		if s > syncs {
			d.perSync.Store(uint64(10 * float64(a-acked) / (s - syncs)))
		}
		acked, syncs = a, s
	}
}

// syncs is how many batches an acceptor that is never killed has made durable,
// on average, by its own count.
func (d *demo) syncs(ctx context.Context) float64 {
	sum, n := 0.0, 0.0
	for i, node := range d.fleet.Nodes {
		if i == demoVictim {
			continue
		}
		if m, err := node.Metrics(ctx); err == nil {
			sum, n = sum+m[syncsMetric], n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// line is the live progress.
func (d *demo) line(r workload.Rate) string {
	var lags []string
	for i, m := range d.proposer.Peers() {
		lag := cli.Bytes(m.LagBytes).Human()
		if !d.fleet.Nodes[i].Running() {
			lag = "down"
		}
		lags = append(lags, lag)
	}
	return fmt.Sprintf("%5.1f s  %v  %.1f per fdatasync  lag %s", time.Since(d.began).Seconds(), r,
		float64(d.perSync.Load())/10, strings.Join(lags, " | "))
}

// catchUp waits until every acceptor has acknowledged the whole log.
func (d *demo) catchUp(ctx context.Context, r *demoResult) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, demoCatchUpWait)
	defer cancel()
	progress := d.app.NewProgress(func() string {
		return "waiting for all three: " + cli.Bytes(workload.Lag(d.proposer.Status())).Human() + " to go"
	})
	defer progress.Stop()
	if err := workload.Settle(ctx, d.proposer); err != nil {
		return fmt.Errorf("not every acceptor has caught up after %v: %w", time.Since(began).Round(time.Second), err)
	}
	r.CatchUpMS = float64(time.Since(began).Microseconds()) / 1e3
	return nil
}

// prove reads everything back from each acceptor's own disk.
func (d *demo) prove(ctx context.Context, client *admin.Client, r *demoResult) error {
	acks, err := workload.ReadAcksFile(d.ackLog())
	if err != nil {
		return err
	}
	var read atomic.Uint64
	progress := d.app.NewProgress(func() string { return "reading back: " + cli.Bytes(read.Load()).Human() })
	audit := workload.Audit{Cluster: client, Timeline: demoTimeline, Acks: acks, Read: &read, AnswerWait: questionWait}
	found, err := audit.Run(ctx)
	progress.Stop()
	if err != nil {
		return err
	}
	r.Acked, r.Missing, r.Identical, r.End = found.Acked, found.Missing, found.Identical, found.End
	if found.Identical {
		r.SHA256 = found.Replicas[0].SHA256
	}
	for _, x := range found.Replicas {
		if !x.Read {
			fmt.Fprintf(d.app.Err, "acceptor %s: %s\n", x.Addr, x.Error)
		}
	}
	return nil
}

// inMemory reports whether a directory is on tmpfs, which no fdatasync reaches.
func inMemory(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.TMPFS_MAGIC
}

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
