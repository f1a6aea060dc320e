package ingest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// sameAsFiles compares the log with the primary's own segment files.
func (w *world) sameAsFiles(c *pgcluster.Cluster, tli pgwal.TLI, segment pgwal.SegmentBytes) {
	w.Helper()
	st := w.log.State()
	for at := st.First; at < st.Commit; {
		end := min(segment.Begin(at)+wal.LSN(segment), st.Commit)
		file, err := os.ReadFile(filepath.Join(c.Dir, "pg_wal", segment.FileName(tli, at)))
		if os.IsNotExist(err) {
			at = end // PostgreSQL needs it no more
			continue
		}
		w.check(err)
		if !bytes.Equal(file[segment.Offset(at):segment.Offset(at)+int(end-at)], w.log.Bytes(at, end)) {
			w.Fatalf("segment of %v: the log's bytes are not those of the file", at)
		}
		at = end
	}
}

func TestCommitWaitsForTheQuorum(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{})
	b := w.bridge(w.primary)
	b.streaming()
	w.sql(w.primary, "CREATE TABLE t(i int)")
	w.sql(w.primary, "INSERT INTO t SELECT generate_series(1, 1000)")
	w.caughtUp(w.primary)
	b.until("protection", func(s ingest.Status) bool { return s.Protection == ingest.Protected && *s.Synced })

	w.log.Freeze()
	insert := w.sqlAsync(w.primary, "INSERT INTO t VALUES (0)")
	b.until("waiting", func(s ingest.Status) bool { return s.Protection == ingest.Waiting })
	select {
	case err := <-insert:
		t.Fatal("COMMIT returned without a quorum:", err)
	default:
	}
	if n := w.sql(w.primary, "SELECT count(*) FROM t"); n != "1000" {
		t.Fatal("others see", n, "rows")
	}
	if ready, why := b.Ready(); ready || !strings.Contains(why, "commits wait") {
		t.Error(ready, why)
	}
	w.log.Thaw()
	w.check(<-insert)
	insert <- nil
	b.until("protection", func(s ingest.Status) bool { return s.Protection == ingest.Protected })
	w.caughtUp(w.primary)
	w.sameAsFiles(w.primary, 1, 16<<20)
}

func TestRestartedBridgeResumesAtTheExactPosition(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{})
	b := w.bridge(w.primary)
	b.streaming()
	w.sql(w.primary, "CREATE TABLE t AS SELECT generate_series(1, 5000) AS i")
	w.caughtUp(w.primary)
	b.end()
	end := w.log.State().End
	w.sql(w.primary, "SET synchronous_commit = local; INSERT INTO t VALUES (0)") // the primary gets ahead (R4)
	b = w.bridge(w.primary)
	b.streaming()
	w.caughtUp(w.primary)
	d := w.log.State().Decisions
	if got := d[len(d)-1].Start; got != end {
		t.Errorf("resumed at %v, the log ended at %v", got, end)
	}
	b.until("synced", func(s ingest.Status) bool { return s.Synced != nil && *s.Synced })
	w.sameAsFiles(w.primary, 1, 16<<20)
}

func TestRestartedPrimaryIsFollowed(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{})
	b := w.bridge(w.primary)
	b.streaming()
	w.sql(w.primary, "CREATE TABLE t AS SELECT generate_series(1, 5000) AS i")
	for _, how := range []struct {
		name string
		stop func() error
	}{
		{"kill -9", func() error { return w.primary.Stop(w.ctx, pgcluster.Kill) }},
		{"immediate", func() error { return w.primary.Stop(w.ctx, pgcluster.Immediate) }},
		{"fast", func() error { return w.primary.Stop(w.ctx, pgcluster.Fast) }},
	} {
		w.check(how.stop())
		w.check(w.primary.Start(w.ctx))
		w.sql(w.primary, "INSERT INTO t VALUES (0)")
	}
	w.caughtUp(w.primary)
	w.sameAsFiles(w.primary, 1, 16<<20)
}

// TestSegmentEndKeepsTheProof ends the log exactly where a segment ends and
// makes PostgreSQL remove all it may: the next attachment must still find bytes to compare.
func TestSegmentEndKeepsTheProof(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{SegmentMiB: 1}, "wal_keep_size = 0", "min_wal_size = 2MB", "max_wal_size = 2MB")
	b := w.bridge(w.primary)
	b.streaming()
	w.sql(w.primary, "CREATE TABLE t AS SELECT generate_series(1, 20000) AS i")
	w.sql(w.primary, "SET synchronous_commit = local; SELECT pg_switch_wal()")
	w.caughtUp(w.primary)
	st := w.log.State()
	if pgwal.SegmentBytes(1<<20).Offset(st.End) != 0 {
		t.Skip("the server wrote something behind the switch")
	}
	b.end()
	for range 3 {
		w.sql(w.primary, "SET synchronous_commit = local; CREATE TABLE u AS SELECT generate_series(1, 50000); DROP TABLE u; CHECKPOINT")
	}
	b = w.bridge(w.primary)
	b.streaming()
	w.caughtUp(w.primary)
}

func TestShutdownEndsWithoutAQuorum(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{}, "wal_sender_timeout = 60s")
	b := w.bridge(w.primary)
	b.streaming()
	w.sql(w.primary, "CREATE TABLE t(i int)")
	w.log.Freeze()
	w.sqlAsync(w.primary, "INSERT INTO t VALUES (0)")
	b.until("waiting", func(s ingest.Status) bool { return s.Protection == ingest.Waiting })
	w.stop(w.primary) // bounded by the world's context: without the rule it never ends
	w.log.Thaw()
	w.check(w.primary.Start(w.ctx))
	if n := w.sql(w.primary, "SELECT count(*) FROM t"); n != "1" {
		t.Error(n, "rows")
	}
	w.caughtUp(w.primary)
}

func TestShutdownEndsWhileTheWindowIsFull(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{}, "wal_sender_timeout = 60s")
	b := w.bridge(w.primary)
	b.streaming()
	w.log.Freeze()
	w.sql(w.primary, "SET synchronous_commit = local; CREATE TABLE t AS SELECT i, repeat('x', 1000) FROM generate_series(1, 120000) AS i")
	b.until("waiting", func(s ingest.Status) bool { return s.Protection == ingest.Waiting })
	w.stop(w.primary)
}

func TestSenderTimeoutIsHonoured(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{}, "wal_sender_timeout = 1s")
	b := w.bridge(w.primary)
	b.streaming()
	w.log.Freeze()
	w.sqlAsync(w.primary, "CREATE TABLE t(i int)")
	b.until("waiting", func(s ingest.Status) bool { return s.Protection == ingest.Waiting })
	until := time.Now().Add(3 * time.Second) // three timeouts with the quorum lost and nothing to report
	for time.Now().Before(until) {
		time.Sleep(50 * time.Millisecond)
	}
	if s := b.Status(); s.Sessions != 1 || !s.UpstreamUp {
		t.Errorf("the link was lost: %+v", s)
	}
	if strings.Contains(w.primary.LogTail(1<<20), "replication timeout") {
		t.Error("PostgreSQL gave the bridge up")
	}
	w.log.Thaw()
}

func TestLargeRecords(t *testing.T) {
	for _, mib := range []int{1, 16, 64, 1024} {
		t.Run(pgwal.SegmentBytes(mib<<20).String(), func(t *testing.T) {
			if mib == 1024 && os.Getenv(longVariable) == "" {
				t.Skip("writes several GiB of WAL files; set " + longVariable + "=1 to run it")
			}
			w := newWorld(t, pgcluster.InitOptions{SegmentMiB: mib}, "min_wal_size = "+pgwal.SegmentBytes(2*mib<<20).String(), "max_wal_size = 8GB")
			w.bridge(w.primary).streaming()
			w.sql(w.primary, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS i; CHECKPOINT")
			for _, size := range []int{20, 40} {
				w.sql(w.primary, "SELECT pg_logical_emit_message(true, 'large', repeat('x', "+itoa(size<<20)+"))")
			}
			w.sql(w.primary, "UPDATE t SET i = i + 1") // full-page images after the checkpoint
			w.sql(w.primary, "SELECT pg_switch_wal()")
			w.sql(w.primary, "INSERT INTO t VALUES (0)")
			w.caughtUp(w.primary)
			w.sameAsFiles(w.primary, 1, pgwal.SegmentBytes(mib<<20))
		})
	}
}
