package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// postgresDemoResult is what "demo --postgres --json" prints.
type postgresDemoResult struct {
	Acked     int     `json:"acked"`     // transactions that a client was told are committed
	Recovered int     `json:"recovered"` // transactions in the restored cluster
	Missing   int     `json:"missing"`   // acknowledged and not recovered
	PgbenchS  float64 `json:"pgbench_tps"`
	Version   int     `json:"postgres_major"`
	End       wal.LSN `json:"end"`
	RestoreS  float64 `json:"restore_secs"`
}

// postgresDemo is one run: a cluster, its bridge, and three acceptors.
type postgresDemo struct {
	flags   *demoFlags
	app     *app
	in      pgcluster.Installation
	dir     string
	binary  string // a copy that PostgreSQL's user may run
	fleet   *fleet.Fleet
	primary *pgcluster.Cluster
	bridge  *demoChild
	began   time.Time
}

// demoPostgresTimeline is the log of the demo.
var demoPostgresTimeline = wal.TimelineID{Tenant: "demo", Timeline: "postgres"}

// postgresDemoMax bounds a demo whatever goes wrong, beyond its load.
const postgresDemoMax = 5 * time.Minute

func (f *demoFlags) runPostgres(ctx context.Context, a *app) error {
	in, err := pgcluster.Find()
	if err != nil {
		return cli.WithCode(cli.NotFound, err)
	}
	ctx, cancel := context.WithTimeout(ctx, postgresDemoMax+f.duration)
	defer cancel()
	d := &postgresDemo{flags: f, app: a, in: in, began: time.Now()}
	if d.dir, err = in.TempDir(); err != nil {
		return err
	}
	result, err := d.play(ctx)
	if d.fleet != nil {
		d.fleet.Kill()
	}
	if err != nil {
		fmt.Fprintf(a.Err, "data and logs are left in %s\n", d.dir)
		return err
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	if f.asJSON {
		err = a.printJSON(result)
	} else {
		paint := cli.Painter(a.Colour(a.Out))
		verdict := paint.Paint(cli.Green, "missing 0")
		if result.Missing > 0 {
			verdict = paint.Paint(cli.Red, fmt.Sprintf("missing %d", result.Missing))
		}
		_, err = fmt.Fprintf(a.Out, "\nacknowledged %d, recovered %d, %s (pgbench beside it: %.0f TPS; restored in %.1f s)\n", result.Acked, result.Recovered, verdict, result.PgbenchS, result.RestoreS)
	}
	if err == nil && result.Missing > 0 {
		err = cli.Errorf(cli.Corruption, "the proof failed")
	}
	return err
}

func (d *postgresDemo) say(format string, args ...any) {
	fmt.Fprintf(d.app.Err, "%5.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

func (d *postgresDemo) play(ctx context.Context) (*postgresDemoResult, error) {
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	defer d.primary.Close()
	defer func() { d.bridge.kill() }()
	backup, err := d.primary.BaseBackup(ctx, filepath.Join(d.dir, "backup"), false)
	if err != nil {
		return nil, err
	}
	defer backup.Close()
	d.say("took a base backup without any WAL")
	acked, tps, err := d.load(ctx)
	if err != nil {
		return nil, err
	}
	d.say("kill -9 of PostgreSQL and of the bridge under load; %d transactions were acknowledged", len(acked))
	if err := os.RemoveAll(d.primary.Dir); err != nil {
		return nil, err
	}
	d.fleet.Nodes[0].Kill()
	d.say("the data directory is deleted, WAL included, and one acceptor is killed too")
	result := &postgresDemoResult{Acked: len(acked), PgbenchS: tps, Version: d.in.Major}
	began := time.Now()
	if result.End, err = d.restore(ctx, backup); err != nil {
		return nil, err
	}
	result.RestoreS = time.Since(began).Seconds()
	rows, err := backup.Query(ctx, "SELECT id FROM acked")
	if err != nil {
		return nil, err
	}
	recovered := make(map[string]bool, len(rows))
	for _, r := range rows {
		recovered[r[0]] = true
	}
	result.Recovered = len(recovered)
	for _, id := range acked {
		if !recovered[strconv.FormatInt(id, 10)] {
			result.Missing++
		}
	}
	d.say("restored from the base backup and two acceptors up to %v", result.End)
	return result, backup.Stop(ctx, pgcluster.Fast)
}

// prepare starts acceptors, PostgreSQL and the bridge, and waits until commits are protected.
func (d *postgresDemo) prepare(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	d.binary = filepath.Join(d.dir, "holdfast")
	if err := os.WriteFile(d.binary, b, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(d.dir, "acceptors"), 0o700); err != nil {
		return err
	}
	if d.fleet, err = fleet.Start(ctx, fleet.Config{Binary: d.binary, Dir: filepath.Join(d.dir, "acceptors"), Nodes: 3}); err != nil {
		return err
	}
	d.say("three acceptors run")
	if d.primary, err = d.in.Init(ctx, filepath.Join(d.dir, "primary"), pgcluster.InitOptions{}); err != nil {
		return err
	}
	if err := d.primary.Configure("synchronous_standby_names = 'holdfast'", "wal_log_hints = on"); err != nil {
		return err
	}
	if err := d.primary.Start(ctx); err != nil {
		return err
	}
	var client clientFlags
	if err := errors.Join(client.acceptors.Set(strings.Join(d.fleet.Addresses(), ",")), client.timeline.Set(demoPostgresTimeline.String())); err != nil {
		return err
	}
	if _, err := initPostgres(ctx, &client, postgresFlags{dsn: d.primary.DSN(), name: "holdfast", slot: "holdfast"}); err != nil {
		return err
	}
	d.bridge, err = startDemoChild(filepath.Join(d.dir, "bridge.log"), d.binary, "bridge", "--postgres", d.primary.DSN(), "--http", "",
		"--acceptors", client.acceptors.String(), "--timeline", demoPostgresTimeline.String(), "--until-stdin-closes")
	if err != nil {
		return err
	}
	// This COMMIT returns when a majority of the acceptors has it.
	if _, err := d.primary.Query(ctx, "CREATE TABLE acked(id bigint PRIMARY KEY, at timestamptz DEFAULT now())"); err != nil {
		return err
	}
	d.say("PostgreSQL %d runs unmodified, and its commits wait for two of three acceptors", d.in.Major)
	return nil
}

// load runs pgbench, and beside it clients whose every acknowledged
// transaction is remembered, until it kills PostgreSQL and the bridge under them.
func (d *postgresDemo) load(ctx context.Context) (acked []int64, tps float64, err error) {
	if _, err := d.in.Run(ctx, "pgbench", "-i", "-q", "-s", "1", d.primary.DSN()); err != nil {
		return nil, 0, err
	}
	seconds := max(1, int(d.flags.duration.Seconds()/2))
	d.say("pgbench -N for %d s, and numbered transactions beside it", seconds)
	var mu sync.Mutex
	var next atomic.Int64
	var clients sync.WaitGroup
	running, stop := context.WithCancel(ctx)
	defer stop()
	for range 8 {
		clients.Go(func() {
			conn, err := pgconn.Connect(running, d.primary.DSN())
			if err != nil {
				return
			}
			defer conn.Close(context.WithoutCancel(ctx))
			for running.Err() == nil {
				id := next.Add(1)
				if _, err := conn.Exec(running, fmt.Sprintf("INSERT INTO acked VALUES (%d)", id)).ReadAll(); err != nil {
					return
				}
				mu.Lock()
				acked = append(acked, id)
				mu.Unlock()
			}
		})
	}
	out, err := d.in.Run(ctx, "pgbench", "-N", "-n", "-c", "8", "-T", strconv.Itoa(seconds), d.primary.DSN())
	if err != nil {
		return nil, 0, err
	}
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "tps = "); ok {
			fmt.Sscan(rest, &tps)
		}
	}
	select {
	case <-time.After(d.flags.duration / 2):
	case <-ctx.Done():
	}
	err = d.primary.Stop(ctx, pgcluster.Kill)
	d.bridge.kill()
	stop()
	clients.Wait()
	return acked, tps, err
}

// restore fences the log and recovers backup from the acceptors alone.
func (d *postgresDemo) restore(ctx context.Context, backup *pgcluster.Cluster) (wal.LSN, error) {
	q, err := quorum.New(quorum.Config{Acceptors: d.fleet.Addresses(), Timeline: demoPostgresTimeline})
	if err != nil {
		return 0, err
	}
	defer q.Close()
	f, err := q.Fence(ctx)
	if err != nil {
		return 0, err
	}
	d.say("fenced in term %d: the log ends at %v", f.Term, f.End)
	err = backup.Configure(fmt.Sprintf(`restore_command = '%s wal-fetch --acceptors %s --timeline %v %%f "%%p"'`,
		d.binary, strings.Join(d.fleet.Addresses(), ","), demoPostgresTimeline), "synchronous_standby_names = ''")
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(backup.Dir, "recovery.signal"), nil, 0o644); err != nil {
		return 0, err
	}
	if err := backup.Start(ctx); err != nil {
		return 0, err
	}
	for {
		v, err := backup.Value(ctx, "SELECT pg_is_in_recovery()")
		if v == "f" || ctx.Err() != nil {
			return f.End, errors.Join(err, ctx.Err())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// demoChild is a child process that leaves when its standard input ends.
type demoChild struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

func startDemoChild(log, binary string, args ...string) (*demoChild, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &demoChild{cmd, stdin, make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

func (c *demoChild) kill() {
	if c == nil {
		return
	}
	_ = c.cmd.Process.Kill()
	<-c.ended
	_ = c.stdin.Close()
}
