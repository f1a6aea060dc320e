package system

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestDisaster: the primary, its data, the bridge and one acceptor are gone. A
// base backup without WAL and two acceptors bring everything acknowledged back
// (R7), the restored cluster attaches on its own timeline (R6), and the old
// primary rejoins by pg_rewind with our restore_command (R9).
func TestDisaster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgcluster.InitOptions{})
	w.sql(w.primary, loadTable)
	backup, err := w.primary.BaseBackup(w.ctx, filepath.Join(w.dir, "backup"), false)
	w.check(err)
	l := w.load(w.primary, 8)
	l.more(500)
	w.sql(w.primary, "SET synchronous_commit = off; SELECT pg_logical_emit_message(false, 'bulk', repeat('x', 30000000))")
	l.more(500)

	w.check(w.primary.Stop(w.ctx, pgcluster.Kill))
	w.bridge.kill()
	w.acceptors[0].kill()
	l.end()
	lost := w.in.Open(w.primary.Dir + "-lost")
	w.check(os.Rename(w.primary.Dir, lost.Dir))

	f := w.fence()
	t.Logf("fenced in term %d; the log ends at %v; given up: %v", f.Term, f.End, f.GivenUp)
	w.check(backup.Configure(w.restoreCommand("recovery"), "recovery_target_timeline = latest"))
	w.signal(backup, "recovery.signal")
	w.start(backup)
	w.until("promotion", func() bool { return w.sql(backup, "SELECT pg_is_in_recovery()") == "f" })
	l.audit(backup)
	fork := w.forkOf(backup, 2)
	if fork < f.End {
		t.Errorf("the restored cluster forked at %v, below the log's end %v", fork, f.End)
	}

	// The restored cluster goes on as the primary, with two acceptors.
	w.startBridge(backup)
	w.sql(backup, "INSERT INTO acked VALUES (-1, '')")

	// The old primary comes back with its own last WAL, and is turned into a standby.
	lost.Port = 0
	w.start(lost)
	w.check(lost.Stop(w.ctx, pgcluster.Fast))
	w.check(lost.Configure(w.restoreCommand("standby")))
	out, err := w.in.Run(w.ctx, "pg_rewind", "-c", "-D", lost.Dir, "--source-server="+backup.DSN())
	if err != nil {
		t.Fatal(err, out)
	}
	t.Log(out)
	w.check(lost.Configure(w.restoreCommand("standby"), "primary_conninfo = '"+backup.DSN("application_name=rewound")+"'"))
	w.signal(lost, "standby.signal")
	w.start(lost)
	w.replayed(lost, w.lsn(backup))
	if n := w.sql(lost, "SELECT count(*) FROM acked WHERE id = -1"); n != "1" {
		t.Error("the rewound standby does not follow")
	}
	l.audit(lost)
}

// forkOf is where tli began, as c's history file says.
func (w *world) forkOf(c *pgcluster.Cluster, tli pgwal.TLI) wal.LSN {
	w.Helper()
	a, err := pgwal.ParseHistory(tli, []byte(w.sql(c, "SELECT pg_read_file('pg_wal/"+pgwal.HistoryFileName(tli)+"')")))
	w.check(err)
	return a[len(a)-1].Begin
}

// TestLaggardIsRepairedFromPeers (R10): the slot lets go of WAL that one
// acceptor still lacks, and PostgreSQL removes it.
func TestLaggardIsRepairedFromPeers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgcluster.InitOptions{SegmentMiB: 1}, "wal_keep_size = 0", "min_wal_size = 2MB", "max_wal_size = 4MB")
	w.sql(w.primary, "CREATE TABLE t(i int)")
	w.acceptors[2].kill()
	for range 3 {
		w.sql(w.primary, "INSERT INTO t SELECT generate_series(1, 40000)")
		w.sql(w.primary, "CHECKPOINT")
	}
	w.startAcceptor(2)
	end := w.lsn(w.primary)
	w.until("repair of the third acceptor", func() bool {
		for _, a := range w.timelines() {
			if a.Err != nil || a.Value.Commit < end {
				return false
			}
		}
		return true
	})
}

// TestBulkCrashIsClosed kills everything in the middle of large records, so
// that the log ends inside one, again and again.
func TestBulkCrashIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgcluster.InitOptions{})
	w.sql(w.primary, loadTable)
	backup, err := w.primary.BaseBackup(w.ctx, filepath.Join(w.dir, "backup"), false)
	w.check(err)
	l := w.load(w.primary, 2)
	l.more(10)
	bulk := make(chan struct{})
	go func() {
		defer close(bulk)
		for {
			if _, err := w.primary.Query(w.ctx, "SET synchronous_commit = off; SELECT pg_logical_emit_message(false, 'bulk', repeat('x', 9000000)) FROM generate_series(1, 50)"); err != nil {
				return
			}
		}
	}()
	begun := w.lsn(w.primary)
	w.until("bulk in the log", func() bool {
		v, err := w.quorum.View(w.ctx)
		return err == nil && v.End > begun+30<<20
	})
	w.bridge.kill()
	w.check(w.primary.Stop(w.ctx, pgcluster.Kill))
	l.end()
	<-bulk
	f := w.fence()
	t.Logf("the log ends at %v; given up: %v", f.End, f.GivenUp)
	if f.GivenUp == 0 {
		t.Log("this time the log ended between two records")
	}
	w.check(backup.Configure(w.restoreCommand("recovery")))
	w.signal(backup, "recovery.signal")
	w.start(backup)
	w.until("promotion", func() bool { return w.sql(backup, "SELECT pg_is_in_recovery()") == "f" })
	l.audit(backup)
	if fork := w.forkOf(backup, 2); fork < f.End {
		t.Errorf("forked at %v, below the log's end %v", fork, f.End)
	}
	w.startBridge(backup)
	w.sql(backup, "INSERT INTO acked VALUES (-1, '')")
}
