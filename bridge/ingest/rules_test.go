package ingest_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func itoa(n int) string { return strconv.Itoa(n) }

// refused runs a bridge between c and the log, which must refuse for good and change nothing.
func (w *world) refused(c *pgcluster.Cluster, want pgwal.Refusal) *pgwal.RefusedError {
	w.Helper()
	before := w.log.State()
	r := errorAs[*pgwal.RefusedError](w.T, w.bridge(c).result())
	if r.Refusal != want || !r.Final {
		w.Fatalf("refused with %v (final %v), want %q", r, r.Final, want)
	}
	if after := w.log.State(); after.End != before.End || !after.History.Equal(before.History) {
		w.Fatalf("the refusal changed the log: %+v, before %+v", after, before)
	}
	return r
}

// R1: another cluster is another log.
func TestR1OtherSystemIsRefused(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{})
	b := w.bridge(w.primary)
	b.streaming()
	w.caughtUp(w.primary)
	b.end()
	other, err := w.in.Init(w.ctx, w.dir+"/other", pgcluster.InitOptions{})
	w.check(err)
	w.start(other)
	w.refused(other, pgwal.Foreign)

	// The same cluster under properties that say something else.
	p, err := pgwal.DecodeProperties(w.log.State().Properties)
	w.check(err)
	for _, change := range []func(*pgwal.Properties){
		func(p *pgwal.Properties) { p.VersionMajor++ }, func(p *pgwal.Properties) { p.Segment = 1 << 20 },
	} {
		q := p
		change(&q)
		enc, err := q.Encode()
		w.check(err)
		w.log.SetProperties(enc)
		w.refused(w.primary, pgwal.Foreign)
	}
	w.log.SetProperties([]byte("something that no bridge wrote, long enough to be decoded"))
	w.refused(w.primary, pgwal.Foreign)
}

// R2: a primary that the log has left behind is refused.
func TestR2StalePrimaryIsRefused(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{})
	standby := w.standby(w.primary, "standby")
	b := w.bridge(w.primary)
	b.streaming()
	w.sql(w.primary, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS i")
	w.replayed(standby, w.primary)
	w.caughtUp(w.primary)
	b.end()
	w.check(standby.Promote(w.ctx))
	b = w.bridge(standby)
	b.streaming()
	w.sql(standby, "INSERT INTO t VALUES (0)")
	w.caughtUp(standby)
	b.end()
	w.refused(w.primary, pgwal.Stale)
}

// R3: a cold clone has the same system identifier and the same TLI.
func TestR3CloneIsRefused(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{})
	b := w.bridge(w.primary)
	b.streaming()
	w.sql(w.primary, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS i")
	w.caughtUp(w.primary)
	w.stop(w.primary)
	clone := w.copyOf(w.primary, "clone")
	w.check(w.primary.Start(w.ctx))
	w.sql(w.primary, "INSERT INTO t VALUES (1)")
	w.caughtUp(w.primary)
	b.end()

	w.start(clone)
	w.sql(clone, "SET synchronous_commit = local; INSERT INTO t SELECT generate_series(1, 20000)")
	r := w.refused(clone, pgwal.Foreign)
	t.Log(r)

	// The server that wrote the log is still welcome.
	b = w.bridge(w.primary)
	b.streaming()
	w.sql(w.primary, "INSERT INTO t VALUES (2)")
}

// R3: a single differing byte in the overlap is enough.
func TestR3OneByteIsEnough(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{})
	b := w.bridge(w.primary)
	b.streaming()
	w.sql(w.primary, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS i")
	w.caughtUp(w.primary)
	b.end()
	w.log.Flip(w.log.State().End - 1000)
	w.refused(w.primary, pgwal.Foreign)
}

// R5: a primary that has less than the log on the same TLI is an older copy.
func TestR5PrimaryBehindIsRefused(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{})
	b := w.bridge(w.primary)
	b.streaming()
	w.sql(w.primary, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS i")
	w.stop(w.primary)
	old := w.copyOf(w.primary, "old")
	w.check(w.primary.Start(w.ctx))
	w.sql(w.primary, "INSERT INTO t SELECT generate_series(1, 100000)")
	w.caughtUp(w.primary)
	b.end()
	w.start(old)
	w.refused(old, pgwal.Behind)
}

// R6: a standby promoted at S, against what may be committed and the log's end.
func TestR6Promotion(t *testing.T) {
	// promoted makes a log that ends beyond the point where the standby was
	// promoted, and returns the standby and that point.
	promoted := func(w *world) (*pgcluster.Cluster, wal.LSN) {
		standby := w.standby(w.primary, "standby")
		b := w.bridge(w.primary)
		b.streaming()
		w.sql(w.primary, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS i")
		w.replayed(standby, w.primary)
		w.check(standby.Promote(w.ctx))
		w.sql(w.primary, "INSERT INTO t SELECT generate_series(1, 1000)") // the standby lacks this
		w.caughtUp(w.primary)
		b.end()
		w.stop(w.primary)
		a, err := pgwal.ParseHistory(2, []byte(w.sql(standby, "SELECT pg_read_file('pg_wal/00000002.history')")))
		w.check(err)
		return standby, a[1].Begin
	}
	t.Run("below", func(t *testing.T) {
		w := newWorld(t, pgcluster.InitOptions{})
		standby, s := promoted(w)
		w.log.SetMayBeCommitted(s + 1)
		w.refused(standby, pgwal.BelowCommit)
	})
	t.Run("below, until the third answers", func(t *testing.T) {
		w := newWorld(t, pgcluster.InitOptions{})
		standby, s := promoted(w)
		w.log.SetCommit(s)
		w.log.SetMayBeCommitted(s + 1)
		b := w.bridge(standby)
		b.until("a refusal", func(s ingest.Status) bool { return s.LastDisconnect != "" })
		w.log.SetMayBeCommitted(s)
		b.streaming()
	})
	t.Run("between", func(t *testing.T) {
		w := newWorld(t, pgcluster.InitOptions{})
		standby, s := promoted(w)
		w.log.SetCommit(s)
		w.log.SetMayBeCommitted(s)
		b := w.bridge(standby)
		b.streaming()
		w.sql(standby, "INSERT INTO t VALUES (0)")
		w.caughtUp(standby)
		d := w.log.State().Decisions
		if got := d[len(d)-1].Start; got != s {
			t.Errorf("the log was cut at %v, the promotion was at %v", got, s)
		}
		b.until("the new timeline", func(s ingest.Status) bool { return s.TLI == 2 })
		w.sameAsFiles(standby, 2, 16<<20)
	})
	t.Run("above", func(t *testing.T) {
		w := newWorld(t, pgcluster.InitOptions{})
		standby := w.standby(w.primary, "standby")
		b := w.bridge(w.primary)
		b.streaming()
		w.sql(w.primary, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS i")
		w.caughtUp(w.primary)
		b.end()
		end := w.log.State().End
		w.sql(w.primary, "SET synchronous_commit = local; INSERT INTO t SELECT generate_series(1, 1000)")
		w.replayed(standby, w.primary)
		w.check(standby.Promote(w.ctx))
		before := len(w.log.State().Decisions)
		b = w.bridge(standby)
		b.streaming()
		w.sql(standby, "INSERT INTO t VALUES (0)")
		w.caughtUp(standby)
		b.until("the new timeline", func(s ingest.Status) bool { return s.TLI == 2 })
		if got := w.log.State().Decisions[before].Start; got != end {
			t.Errorf("resumed at %v, the log ended at %v", got, end)
		}
		t.Logf("sessions %d, %q", b.Status().Sessions, b.Status().LastDisconnect)
		w.sameAsFiles(standby, 2, 16<<20)
		p, err := pgwal.DecodeProperties(w.log.State().Properties)
		if err != nil || p.Ancestry.Last() != 2 || p.Ancestry[1].Begin <= end {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// R8: a fenced bridge says nothing more to PostgreSQL, and calls for help.
func TestR8Fenced(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{})
	hook := make(chan struct{})
	b := w.bridge(w.primary, func(c *ingest.Config) { c.OnFenced = func(context.Context) { close(hook) } })
	b.streaming()
	w.sql(w.primary, "CREATE TABLE t(i int)")
	writer, err := w.log.Open(w.ctx, 0, func(_ context.Context, e ingest.Election) (ingest.Decision, error) {
		return ingest.Decision{Start: e.Start, SystemID: e.SystemID, Properties: e.Properties}, nil
	})
	w.check(err)
	fenced := errorAs[*ingest.FencedError](t, b.result())
	if fenced.Term != w.log.State().Term {
		t.Errorf("term %d, the log's is %d", fenced.Term, w.log.State().Term)
	}
	<-hook
	insert := w.sqlAsync(w.primary, "INSERT INTO t VALUES (0)")
	for w.sql(w.primary, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") != "1" {
		select {
		case err := <-insert:
			t.Fatal("a fenced primary's COMMIT returned:", err)
		default:
		}
	}
	w.check(writer.Close())
	w.check(w.primary.Stop(w.ctx, pgcluster.Immediate))
}
