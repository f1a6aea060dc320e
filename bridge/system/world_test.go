package system

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// patience bounds every wait; it is never a measurement.
const patience = 2 * time.Minute

// worldLife bounds a test whatever goes wrong.
const worldLife = 4 * time.Minute

// world is a PostgreSQL, three acceptors, and a bridge between them.
type world struct {
	*testing.T
	ctx       context.Context
	in        pgcluster.Installation
	dir       string
	binary    string
	addrs     []string
	acceptors [3]*process
	bridge    *process
	primary   *pgcluster.Cluster
	quorum    *quorum.Quorum
}

func newWorld(t *testing.T, o pgcluster.InitOptions, settings ...string) *world {
	t.Helper()
	return newWorldFor(t, worldLife, o, settings...)
}

func newWorldFor(t *testing.T, life time.Duration, o pgcluster.InitOptions, settings ...string) *world {
	t.Helper()
	in := pgcluster.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), life)
	t.Cleanup(cancel)
	dir, err := in.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{T: t, ctx: ctx, in: in, dir: dir, binary: filepath.Join(dir, "holdfast-system-test")}
	self, err := os.Executable()
	w.check(err)
	b, err := os.ReadFile(self)
	w.check(err)
	w.check(os.WriteFile(w.binary, b, 0o755))

	for range w.acceptors {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		w.check(err)
		w.addrs = append(w.addrs, l.Addr().String())
		defer l.Close()
		l.Close()
	}
	for i := range w.acceptors {
		w.startAcceptor(i)
	}
	t.Cleanup(func() {
		for _, p := range append(w.acceptors[:], w.bridge) {
			if p != nil {
				p.kill()
			}
		}
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(dir, "bridge.log"))
			t.Logf("the bridge's log ends with:\n%s", b[max(0, len(b)-4000):])
		}
	})
	w.quorum, err = quorum.New(quorum.Config{Acceptors: w.addrs, Timeline: timeline})
	w.check(err)
	t.Cleanup(func() { w.quorum.Close() })

	w.primary, err = in.Init(ctx, filepath.Join(dir, "main"), o)
	w.check(err)
	w.check(w.primary.Configure(append([]string{"fsync = off", "wal_sender_timeout = 10s", "synchronous_standby_names = 'holdfast'", "wal_log_hints = on"}, settings...)...))
	w.start(w.primary)
	w.create()
	w.startBridge(w.primary)
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
	w.Cleanup(c.Close)
	w.check(c.Start(w.ctx))
}

func (w *world) startAcceptor(i int) {
	w.Helper()
	var err error
	w.acceptors[i], err = launch(w.binary, "acceptor", filepath.Join(w.dir, fmt.Sprintf("acceptor-%d.log", i+1)),
		fmt.Sprint(i+1), w.addrs[i], filepath.Join(w.dir, fmt.Sprintf("acceptor-%d", i+1)))
	w.check(err)
}

func (w *world) startBridge(c *pgcluster.Cluster) {
	w.Helper()
	var err error
	w.bridge, err = launch(w.binary, "bridge", filepath.Join(w.dir, "bridge.log"), strings.Join(w.addrs, ","), c.DSN("connect_timeout=5"))
	w.check(err)
}

// create does what "holdfast pg init" does.
func (w *world) create() {
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
	client, err := admin.Dial(w.addrs)
	w.check(err)
	defer client.Close()
	for deadline := time.Now().Add(patience); ; {
		_, _, err := client.Create(w.ctx, admin.Creation{Timeline: timeline, First: s.Segment.Begin(slot.Restart)})
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

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

func (w *world) lsn(c *pgcluster.Cluster) wal.LSN {
	w.Helper()
	l, err := wal.ParseLSN(w.sql(c, "SELECT pg_current_wal_flush_lsn()"))
	w.check(err)
	return l
}

// until waits for cond.
func (w *world) until(what string, cond func() bool) {
	w.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("%s did not come", what)
		}
	}
}

// replayed waits until a standby has replayed up to l.
func (w *world) replayed(s *pgcluster.Cluster, l wal.LSN) {
	w.Helper()
	w.until(fmt.Sprintf("replay of %v", l), func() bool {
		at, err := wal.ParseLSN(w.sql(s, "SELECT coalesce(pg_last_wal_replay_lsn(), '0/0')"))
		return err == nil && at >= l
	})
}

// restoreCommand makes c restore from the acceptors.
func (w *world) restoreCommand(mode string) string {
	return fmt.Sprintf("restore_command = '%s=wal-fetch %s %s %s %%f \"%%p\" 2>>%s'", roleVariable, w.binary,
		strings.Join(w.addrs, ","), mode, filepath.Join(w.dir, "wal-fetch.log"))
}

func (w *world) signal(c *pgcluster.Cluster, name string) {
	w.Helper()
	p := filepath.Join(c.Dir, name)
	w.check(os.WriteFile(p, nil, 0o644))
	w.check(os.Chmod(p, 0o644))
}

// fence is "holdfast fence".
func (w *world) fence() quorum.Fence {
	w.Helper()
	f, err := w.quorum.Fence(w.ctx)
	if err != nil || f.Unclosed != nil {
		w.Fatal(err, f.Unclosed)
	}
	return f
}

// timelines asks every acceptor for its copy.
func (w *world) timelines() []admin.Answer[*admin.Timeline] {
	w.Helper()
	client, err := admin.Dial(w.addrs)
	w.check(err)
	defer client.Close()
	return client.Timelines(w.ctx, timeline)
}
