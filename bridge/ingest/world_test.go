package ingest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/seed7f3f3bb8/holdfast/bridge/bridgetest"
	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a real PostgreSQL and an in-memory log.
type world struct {
	*testing.T
	ctx     context.Context
	in      pgcluster.Installation
	dir     string
	primary *pgcluster.Cluster
	log     *bridgetest.Log
}

// patience bounds every wait of these tests; it is never a measurement.
const patience = 60 * time.Second

func newWorld(t *testing.T, o pgcluster.InitOptions, settings ...string) *world {
	t.Helper()
	t.Parallel()
	in := pgcluster.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	dir, err := in.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{T: t, ctx: ctx, in: in, dir: dir}
	w.primary, err = in.Init(ctx, filepath.Join(dir, "main"), o)
	w.check(err)
	w.check(w.primary.Configure(append([]string{"fsync = off", "wal_sender_timeout = 10s", "synchronous_standby_names = 'holdfast'"}, settings...)...))
	w.start(w.primary)
	w.log = bridgetest.New(w.firstLSN())
	return w
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) start(c *pgcluster.Cluster) {
	w.Helper()
	w.check(c.Start(w.ctx))
	w.Cleanup(c.Close)
}

// firstLSN makes the slot and says where a log of this primary begins.
func (w *world) firstLSN() wal.LSN {
	w.Helper()
	conn, err := pgclient.Dial(w.ctx, pgclient.Config{DSN: w.primary.DSN()})
	w.check(err)
	defer conn.Close()
	_, err = conn.CreateSlot(w.ctx, ingest.DefaultSlot)
	w.check(err)
	slot, err := conn.ReadSlot(w.ctx, ingest.DefaultSlot)
	w.check(err)
	s, _, err := conn.Server(w.ctx)
	w.check(err)
	return s.Segment.Begin(slot.Restart)
}

// running is a bridge that runs.
type running struct {
	*ingest.Bridge
	world *world
	stop  context.CancelFunc
	done  chan struct{}
	err   error
}

// bridge starts a bridge between c and the world's log.
func (w *world) bridge(c *pgcluster.Cluster, change ...func(*ingest.Config)) *running {
	w.Helper()
	config := ingest.Config{Postgres: pgclient.Config{DSN: c.DSN()}, Log: w.log,
		Logger: zaptest.NewLogger(w, zaptest.Level(zap.ErrorLevel))}
	for _, f := range change {
		f(&config)
	}
	ctx, stop := context.WithCancel(w.ctx)
	r := &running{Bridge: ingest.New(config), world: w, stop: stop, done: make(chan struct{})}
	go func() { r.err = r.Run(ctx); close(r.done) }()
	w.Cleanup(r.end)
	return r
}

func (r *running) end() {
	r.stop()
	<-r.done
}

// result is the error with which the bridge ended by itself.
func (r *running) result() error {
	r.world.Helper()
	select {
	case <-r.done:
		return r.err
	case <-time.After(patience):
		r.world.Fatalf("the bridge still runs: %+v", r.Status())
		return nil
	}
}

// until waits for a status.
func (r *running) until(what string, cond func(ingest.Status) bool) {
	r.world.Helper()
	for deadline := time.Now().Add(patience); !cond(r.Status()); {
		select {
		case <-r.done:
			r.world.Fatalf("waiting for %s: the bridge ended: %v", what, r.err)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			r.world.Fatalf("%s did not come: %+v", what, r.Status())
		}
	}
}

func (r *running) streaming() {
	r.world.Helper()
	r.until("streaming", func(s ingest.Status) bool { return s.UpstreamUp && s.Commit != nil })
}

// sql runs SQL on c, within the world's time.
func (w *world) sql(c *pgcluster.Cluster, sql string) string {
	w.Helper()
	rows, err := c.Query(w.ctx, sql)
	if err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	if len(rows) == 0 || len(rows[0]) == 0 {
		return ""
	}
	return rows[0][0]
}

// sqlAsync runs SQL and sends its result when it has returned.
func (w *world) sqlAsync(c *pgcluster.Cluster, sql string) chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.Query(w.ctx, sql)
		done <- err
	}()
	w.Cleanup(func() {
		select {
		case <-done:
		case <-time.After(patience):
		}
	})
	return done
}

func (w *world) lsn(c *pgcluster.Cluster) wal.LSN {
	w.Helper()
	l, err := wal.ParseLSN(w.sql(c, "SELECT pg_current_wal_flush_lsn()"))
	w.check(err)
	return l
}

// caughtUp waits until all of c's WAL is in the log and committed.
func (w *world) caughtUp(c *pgcluster.Cluster) wal.LSN {
	w.Helper()
	l := w.lsn(c)
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := w.log.WaitFor(ctx, func(s bridgetest.State) bool { return s.Commit >= l }); err != nil {
		w.Fatalf("the log does not reach %v: %+v", l, w.log.State())
	}
	return l
}

// stop ends c cleanly.
func (w *world) stop(c *pgcluster.Cluster) {
	w.Helper()
	w.check(c.Stop(w.ctx, pgcluster.Fast))
}

// copyOf copies a stopped cluster, as a snapshot of its disk would.
func (w *world) copyOf(c *pgcluster.Cluster, name string) *pgcluster.Cluster {
	w.Helper()
	to := filepath.Join(w.dir, name)
	if out, err := exec.Command("cp", "-a", c.Dir, to).CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
	os.Remove(filepath.Join(to, "postmaster.pid"))
	return w.in.Open(to)
}

// standby makes a streaming standby of c.
func (w *world) standby(c *pgcluster.Cluster, name string) *pgcluster.Cluster {
	w.Helper()
	s, err := c.BaseBackup(w.ctx, filepath.Join(w.dir, name), true)
	w.check(err)
	w.check(s.Configure("primary_conninfo = '" + strings.ReplaceAll(c.DSN("application_name="+name), "'", "''") + "'"))
	w.check(os.WriteFile(filepath.Join(s.Dir, "standby.signal"), nil, 0o600))
	w.check(os.Chmod(filepath.Join(s.Dir, "standby.signal"), 0o644))
	w.start(s)
	return s
}

// replayed waits until the standby has everything that c has.
func (w *world) replayed(s, c *pgcluster.Cluster) {
	w.Helper()
	l := w.lsn(c)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		at, err := wal.ParseLSN(w.sql(s, "SELECT coalesce(pg_last_wal_replay_lsn(), '0/0')"))
		if w.check(err); at >= l {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("the standby replayed up to %v of %v", at, l)
		}
	}
}

func errorAs[T error](t *testing.T, err error) T {
	t.Helper()
	var e T
	if !errors.As(err, &e) {
		t.Fatalf("%v (%T) is not a %T", err, err, e)
	}
	return e
}

// longVariable switches on what takes too long, or writes too much, for every run.
const longVariable = "HOLDFAST_LONG_TESTS"
