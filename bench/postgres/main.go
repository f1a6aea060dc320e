// Command postgres compares what a PostgreSQL's commits cost when they wait for
// nobody, for pg_receivewal --synchronous, for two of three physical standbys,
// and for Holdfast with three acceptors: pgbench -N in interleaved rounds, all
// in one run on one machine, so that the ratios mean something.
//
//	go build -o holdfast ./cmd/holdfast && go run ./bench/postgres --holdfast ./holdfast
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/fleet"
)

// row is one measurement.
type row struct {
	System  string  `json:"system"`
	Clients int     `json:"clients"`
	Round   int     `json:"round"`
	TPS     float64 `json:"tps"`
	P99MS   float64 `json:"p99_ms"`
	InitS   float64 `json:"pgbench_init_secs,omitempty"` // pgbench -i, once per system and round

	// What one fdatasync carried, on the primary and on one acceptor; nil where
	// nobody counts it.
	Primary  *perSync `json:"primary,omitempty"`
	Acceptor *perSync `json:"acceptor,omitempty"`
}

type world struct {
	in      pgcluster.Installation
	dir     string
	binary  string
	primary *pgcluster.Cluster
	fleet   *fleet.Fleet // nil unless Holdfast is measured
	scale   int
	seconds int
}

func main() {
	binary := flag.String("holdfast", "", "the holdfast binary")
	clients := flag.String("clients", "1,16,32,64", "pgbench clients, comma-separated")
	rounds := flag.Int("rounds", 3, "interleaved rounds")
	seconds := flag.Int("seconds", 5, "length of each measurement")
	scale := flag.Int("scale", 10, "pgbench scale")
	flag.Parse()
	if err := run(*binary, *clients, *rounds, *seconds, *scale); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(binary, clients string, rounds, seconds, scale int) error {
	in, err := pgcluster.Find()
	if err != nil {
		return err
	}
	dir, err := in.TempDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("--holdfast: %w", err)
	}
	w := &world{in: in, dir: dir, binary: filepath.Join(dir, "holdfast"), scale: scale, seconds: seconds}
	if err := os.WriteFile(w.binary, b, 0o755); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for round := range rounds {
		for _, system := range []string{"none", "receivewal", "any2of3", "holdfast"} {
			rows, err := w.measure(system, round, strings.Split(clients, ","))
			if err != nil {
				return fmt.Errorf("%s: %w", system, err)
			}
			for _, r := range rows {
				if err := out.Encode(r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// measure makes a fresh cluster with the system's way to wait, and drives it.
func (w *world) measure(system string, round int, clients []string) ([]row, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	base := filepath.Join(w.dir, fmt.Sprintf("%s-%d", system, round))
	defer os.RemoveAll(base)
	if err := w.in.MakeDir(base); err != nil {
		return nil, err
	}
	w.fleet = nil
	var err error
	if w.primary, err = w.in.Init(ctx, filepath.Join(base, "primary"), pgcluster.InitOptions{}); err != nil {
		return nil, err
	}
	defer w.primary.Close()
	if err := w.primary.Start(ctx); err != nil {
		return nil, err
	}
	names, stop, err := w.attach(ctx, system, base)
	if stop != nil {
		defer stop()
	}
	if err != nil {
		return nil, err
	}
	if names != "" {
		if err := w.primary.Configure("synchronous_standby_names = '" + names + "'"); err != nil {
			return nil, err
		}
		if err := w.primary.Reload(ctx); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	if _, err := w.in.Run(ctx, "pgbench", "-i", "-q", "-s", strconv.Itoa(w.scale), w.primary.DSN()); err != nil {
		return nil, err
	}
	initSeconds := time.Since(began).Seconds()
	var rows []row
	for _, c := range clients {
		n, err := strconv.Atoi(c)
		if err != nil {
			return nil, err
		}
		r, err := w.pgbench(ctx, base, n)
		if err != nil {
			return nil, err
		}
		r.System, r.Round, r.InitS = system, round, initSeconds
		rows = append(rows, r)
	}
	return rows, nil
}

// attach starts what commits shall wait for and returns its name.
func (w *world) attach(ctx context.Context, system, base string) (names string, stop func(), err error) {
	switch system {
	case "receivewal":
		received := filepath.Join(base, "received")
		if err := w.in.MakeDir(received); err != nil {
			return "", nil, err
		}
		cmd := w.in.Command(ctx, "pg_receivewal", "-d", w.primary.DSN("application_name=receiver"), "-D", received, "--synchronous")
		if err := cmd.Start(); err != nil {
			return "", nil, err
		}
		return "receiver", func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }, w.connected(ctx, 1)
	case "any2of3":
		var standbys []*pgcluster.Cluster
		stop := func() {
			for _, s := range standbys {
				s.Close()
			}
		}
		for _, name := range []string{"s1", "s2", "s3"} {
			s, err := w.primary.BaseBackup(ctx, filepath.Join(base, name), true)
			if err != nil {
				return "", stop, err
			}
			standbys = append(standbys, s)
			if err := s.Configure("primary_conninfo = '" + w.primary.DSN("application_name="+name) + "'"); err != nil {
				return "", stop, err
			}
			if err := os.WriteFile(filepath.Join(s.Dir, "standby.signal"), nil, 0o644); err != nil {
				return "", stop, err
			}
			if err := s.Start(ctx); err != nil {
				return "", stop, err
			}
		}
		return "ANY 2 (s1, s2, s3)", stop, w.connected(ctx, 3)
	case "holdfast":
		return w.attachHoldfast(ctx, base)
	}
	return "", nil, nil
}

func (w *world) attachHoldfast(ctx context.Context, base string) (string, func(), error) {
	dir := filepath.Join(base, "acceptors")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	f, err := fleet.Start(ctx, fleet.Config{Binary: w.binary, Dir: dir, Nodes: 3})
	if err != nil {
		return "", nil, err
	}
	w.fleet = f
	common := []string{"--postgres", w.primary.DSN(), "--acceptors", strings.Join(f.Addresses(), ","), "--timeline", "bench/postgres"}
	if out, err := exec.CommandContext(ctx, w.binary, append([]string{"pg", "init"}, common...)...).CombinedOutput(); err != nil {
		f.Kill()
		return "", nil, fmt.Errorf("%w: %s", err, out)
	}
	cmd := exec.CommandContext(ctx, w.binary, append([]string{"bridge", "--http", "", "--log-level", "error"}, common...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		f.Kill()
		return "", nil, err
	}
	return "holdfast", func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); f.Kill() }, w.connected(ctx, 1)
}

// connected waits until n replication clients stream.
func (w *world) connected(ctx context.Context, n int) error {
	for {
		got, err := w.primary.Value(ctx, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
		if err != nil {
			return err
		}
		if got == strconv.Itoa(n) {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pgbench runs one measurement; the percentile comes from its log of transactions.
func (w *world) pgbench(ctx context.Context, base string, clients int) (row, error) {
	logs := filepath.Join(base, "log")
	if err := w.in.MakeDir(logs); err != nil {
		return row{}, err
	}
	defer os.RemoveAll(logs)
	primaryBefore, acceptorBefore := w.primarySyncs(ctx), w.acceptorSyncs(ctx)
	out, err := w.in.Run(ctx, "pgbench", "-N", "-n", "-c", strconv.Itoa(clients), "-j", "2", "-T", strconv.Itoa(w.seconds),
		"-l", "--log-prefix", filepath.Join(logs, "t"), w.primary.DSN())
	if err != nil {
		return row{}, err
	}
	r := row{Clients: clients}
	transactions := 0.0
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "tps = "); ok {
			_, _ = fmt.Sscan(rest, &r.TPS)
		}
		if rest, ok := strings.CutPrefix(line, "number of transactions actually processed: "); ok {
			_, _ = fmt.Sscan(rest, &transactions)
		}
	}
	r.Primary = w.primarySyncs(ctx).since(primaryBefore).per(transactions)
	r.Acceptor = w.acceptorSyncs(ctx).since(acceptorBefore).per(transactions)
	files, err := filepath.Glob(filepath.Join(logs, "t*"))
	if err != nil {
		return row{}, err
	}
	var micros []int
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return row{}, err
		}
		for line := range strings.Lines(string(b)) {
			if fields := strings.Fields(line); len(fields) > 2 { // client, transaction, latency in microseconds, ...
				if n, err := strconv.Atoi(fields[2]); err == nil {
					micros = append(micros, n)
				}
			}
		}
	}
	slices.Sort(micros)
	if len(micros) > 0 {
		r.P99MS = float64(micros[len(micros)*99/100]) / 1000
	}
	return r, nil
}
