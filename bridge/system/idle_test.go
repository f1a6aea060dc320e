package system

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
)

const (
	// longVariable switches on what takes too long for every run.
	longVariable = "HOLDFAST_LONG_TESTS"
	// idleVariable is another length of TestIdleThenBurst, as 30m.
	idleVariable = "HOLDFAST_IDLE"
)

// TestIdleThenBurst leaves the bridge and PostgreSQL alone for half an hour,
// hundreds of times wal_sender_timeout, and then lets pgbench run. The link that
// was there before must be the one that carries the burst: neither side may have
// given the other up meanwhile.
func TestIdleThenBurst(t *testing.T) {
	t.Parallel()
	idle := 30 * time.Minute
	if s := os.Getenv(idleVariable); s != "" {
		var err error
		if idle, err = time.ParseDuration(s); err != nil {
			t.Fatal(idleVariable, err)
		}
	} else if os.Getenv(longVariable) == "" {
		t.Skip("takes half an hour; set " + longVariable + "=1 to run it")
	}
	w := newWorldFor(t, idle+worldLife, pgcluster.InitOptions{}, "wal_sender_timeout = 5s", "checkpoint_timeout = 1d")
	w.sql(w.primary, loadTable)
	w.pgbenchInit()
	before := w.sql(w.primary, "SELECT pid FROM pg_stat_replication WHERE application_name = 'holdfast'")
	select {
	case <-time.After(idle):
	case <-w.bridge.done:
		t.Fatal("the bridge has given up while idle")
	}
	if after := w.sql(w.primary, "SELECT pid FROM pg_stat_replication WHERE application_name = 'holdfast'"); after != before {
		t.Errorf("the walsender was %s and is %q after %v without work: the link did not last", before, after, idle)
	}
	l := w.load(w.primary, 4)
	out, err := w.in.Run(w.ctx, "pgbench", "-N", "-n", "-c", "8", "-T", "10", w.primary.DSN())
	w.check(err)
	l.end()
	l.audit(w.primary)
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "tps") {
			t.Logf("after %v idle: %s", idle, strings.TrimSpace(line))
		}
	}
	end := w.lsn(w.primary)
	w.until("all of the burst in the log", func() bool {
		v, err := w.quorum.View(w.ctx)
		return err == nil && v.Commit >= end
	})
	if strings.Contains(w.primary.LogTail(1<<20), "replication timeout") {
		t.Error("PostgreSQL gave the bridge up")
	}
	b, err := os.ReadFile(filepath.Join(w.dir, "bridge.log"))
	w.check(err)
	if n := bytes.Count(b, []byte("\tstreaming\t")); n != 1 {
		t.Errorf("the bridge attached %d times, expected once", n)
	}
}
