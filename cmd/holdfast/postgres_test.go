package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcheck"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// resumeMax is far more than commits may take to go on when a majority is back;
// the figure itself is printed, because a loaded machine is no fault.
const resumeMax = 10 * time.Second

// TestPostgresCommands is the life of one log, command by command, with what
// each says and the code it leaves with.
func TestPostgresCommands(t *testing.T) {
	w := newPostgresWorld(t, "wal_log_hints = on")
	postgres := []string{"--postgres", w.primary.DSN()}
	both := append(postgres, w.where()...)

	// --check of a server on which nothing has been done.
	var report struct {
		Verdict pgcheck.Level `json:"verdict"`
		pgcheck.Report
	}
	check := append([]string{"bridge", "--check"}, postgres...)
	w.runJSON(cli.Failure, &report, check...)
	if report.Verdict != pgcheck.Fault || len(report.Findings) == 0 {
		t.Errorf("--check of a fresh server: %+v", report)
	}
	if out, _ := w.run(cli.Failure, check...); !strings.Contains(out, "synchronous_standby_names") || !strings.Contains(out, "-> ") {
		t.Errorf("--check of a fresh server does not say what to do:\n%s", out)
	}
	w.run(cli.Failure, "bridge", "--check", "--postgres", "host=127.0.0.1 port=1 user=nobody sslmode=disable")
	w.run(cli.Usage, append([]string{"bridge"}, postgres...)...) // no acceptors, no timeline

	// No such timeline yet.
	w.run(cli.NotFound, append([]string{"fence", "--yes"}, w.where()...)...)
	target := filepath.Join(w.dir, "fetched")
	fetch := func(want cli.Code, name string, more ...string) {
		t.Helper()
		os.Remove(target)
		w.run(want, append(append(append([]string{"wal-fetch", "--read-ahead", "0", "--wait", "1s"}, w.where()...), more...), name, target)...)
		if _, err := os.Stat(target); (err == nil) != (want == cli.OK) {
			t.Errorf("wal-fetch %s: exit code %d and file: %v", name, want, err)
		}
	}
	fetch(255, "000000010000000000000001")

	var made pgInitialised
	w.runJSON(cli.OK, &made, append([]string{"pg", "init"}, both...)...)
	if !made.Created || !made.SlotCreated || made.SystemID == 0 {
		t.Errorf("pg init: %+v", made)
	}
	first := made.First
	w.runJSON(cli.OK, &made, append([]string{"pg", "init"}, both...)...)
	if made.Created || made.SlotCreated || made.First != first {
		t.Errorf("pg init, once more: %+v, first %v", made, first)
	}

	bridge := w.serve(append([]string{"bridge"}, both...)...)
	bridge.until("/readyz", http.StatusOK, "")
	w.check(w.primary.Configure("synchronous_standby_names = 'holdfast'"))
	w.check(w.primary.Reload(w.ctx))
	w.until("--check to be content", func() bool {
		return w.sql("SELECT sync_state FROM pg_stat_replication") == "sync"
	})
	w.runJSON(cli.OK, &report, check...)
	if report.Verdict != pgcheck.OK {
		t.Errorf("--check of a good server: %+v", report)
	}
	w.check(w.primary.Configure("synchronous_commit = remote_apply"))
	w.check(w.primary.Reload(w.ctx))
	w.until("the setting", func() bool { return w.sql("SHOW synchronous_commit") == "remote_apply" })
	w.runJSON(cli.Degraded, &report, check...)
	if report.Verdict != pgcheck.Warning {
		t.Errorf("--check with remote_apply: %+v", report)
	}

	w.sql("CREATE TABLE t AS SELECT generate_series(1, 40000) AS i")
	segment := pgwal.SegmentBytes(1 << 20)
	end, err := wal.ParseLSN(w.sql("SELECT pg_current_wal_flush_lsn()"))
	w.check(err)
	beyond := segment.FileName(1, end+64<<20)
	fetch(cli.OK, segment.FileName(1, first))
	fetch(1, "00000002.history") // nobody was promoted
	fetch(255, beyond)           // it may be written at any moment
	fetch(1, beyond, "--live")
	fetch(1, beyond, "--standby")
	fetch(255, "000000010000")
	w.walserver(end)
	w.quorumLost(bridge, func() {
		fetch(255, segment.FileName(1, end+64<<20))
		w.run(cli.NoQuorum, append([]string{"fence", "--yes", "--wait", "1s"}, w.where()...)...)
	})

	w.run(cli.Usage, append([]string{"fence"}, w.where()...)...) // nobody there to ask
	var f fenced
	w.runJSON(cli.OK, &f, append([]string{"fence", "--yes"}, w.where()...)...)
	if f.End < end || f.Term == 0 || f.Timeline.String() != "prod/main" {
		t.Errorf("fence: %+v, the log reached %v", f, end)
	}
	bridge.exit(cli.StaleTerm)
	fetch(1, beyond)
	fetch(cli.OK, segment.FileName(1, f.End-1))
	w.serve(append([]string{"bridge"}, both...)...).exit(cli.StaleTerm) // the server from before
}

// quorumLost kills two of three acceptors under a commit: it waits, and the
// bridge says so in its status, readiness, metric and log; it goes on when one is back.
func (w *postgresWorld) quorumLost(bridge *service, meanwhile func()) {
	w.Helper()
	w.fleet.Nodes[0].Kill()
	w.sql("INSERT INTO t VALUES (0)") // two of three
	w.fleet.Nodes[1].Kill()
	type result struct {
		err error
		at  time.Time
	}
	done := make(chan result, 1)
	go func() {
		_, err := w.primary.Query(w.ctx, "INSERT INTO t VALUES (-1)")
		done <- result{err, time.Now()}
	}()
	bridge.until("/status", http.StatusOK, `"protection":"waiting"`)
	bridge.until("/readyz", http.StatusServiceUnavailable, "commits wait")
	bridge.until("/metrics", http.StatusOK, `holdfast_bridge_protection{state="waiting"} 1`)
	if !strings.Contains(bridge.log.String(), "COMMITs ON POSTGRESQL WAIT") {
		w.Error("the log does not say that commits wait")
	}
	meanwhile()
	select {
	case r := <-done:
		w.Fatal("COMMIT returned with one of three acceptors:", r.err)
	default:
	}
	launched := time.Now()
	w.check(w.fleet.Nodes[0].Start(w.ctx))
	ready := time.Now()
	r := <-done
	w.check(r.err)
	w.Logf("commits went on %v after the acceptor was ready, %v after it was launched", r.at.Sub(ready).Round(time.Millisecond), r.at.Sub(launched).Round(time.Millisecond))
	if r.at.Sub(ready) > resumeMax {
		w.Errorf("commits went on %v after a majority was back", r.at.Sub(ready))
	}
	bridge.until("/readyz", http.StatusOK, "")
	bridge.until("/metrics", http.StatusOK, `holdfast_bridge_protection{state="protected"} 1`)
	w.check(w.fleet.Nodes[1].Start(w.ctx))
}

// walserver: what it refuses to begin with, and that it serves the log.
func (w *postgresWorld) walserver(end wal.LSN) {
	w.Helper()
	walserver := append([]string{"walserver"}, w.where()...)
	w.run(cli.Usage, append(walserver, "--listen", "0.0.0.0:0")...) // everyone, and nobody said so
	bad := filepath.Join(w.dir, "users")
	w.check(os.WriteFile(bad, []byte("role:secret in the clear\n"), 0o600))
	w.run(cli.Usage, append(walserver, "--listen", "127.0.0.1:0", "--users", bad)...)
	w.run(cli.Usage, append(walserver, "--listen", "127.0.0.1:0", "--tls-cert", bad)...) // without its key
	listen := freeAddress(w.T)
	s := w.serve(append(walserver, "--listen", listen)...)
	s.until("/readyz", http.StatusOK, "")
	host, port, _ := strings.Cut(listen, ":")
	conn, err := pgclient.Dial(w.ctx, pgclient.Config{DSN: "host=" + host + " port=" + port + " user=standby sslmode=disable", AllowStandby: true})
	w.check(err)
	server, err := conn.Identify(w.ctx)
	conn.Close()
	w.check(err)
	if server.Flush < end {
		w.Errorf("the WAL server has the log up to %v, it is committed up to %v", server.Flush, end)
	}
	s.stdin.Close()
	s.exit(cli.OK)
}
