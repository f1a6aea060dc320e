package ingest_test

import (
	"testing"

	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
)

// TestProblemsThatAUserCanActOn provokes each error of a first start.
func TestProblemsThatAUserCanActOn(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{HBA: []string{
		"host replication nohba 127.0.0.1/32 reject",
		"host all postgres 127.0.0.1/32 trust",
		"host replication postgres 127.0.0.1/32 trust",
		"host replication weak 127.0.0.1/32 trust",
		"host replication good 127.0.0.1/32 scram-sha-256",
	}})
	w.sql(w.primary, "SET synchronous_commit = local; CREATE ROLE weak LOGIN; CREATE ROLE good LOGIN REPLICATION PASSWORD 'right'")
	standby := w.standby(w.primary, "standby")
	for _, c := range []struct {
		name, dsn string
		kind      pgclient.Kind
	}{
		{"wrong password", w.primary.DSN("user=good password=wrong"), pgclient.Password},
		{"no right", w.primary.DSN("user=weak"), pgclient.Permission},
		{"no line in pg_hba", w.primary.DSN("user=stranger"), pgclient.HBA},
		{"standby", standby.DSN(), pgclient.Standby},
		{"nonsense", "host=a port=x", pgclient.BadDSN},
	} {
		b := w.bridge(w.primary, func(cfg *ingest.Config) { cfg.Postgres.DSN = c.dsn })
		p := errorAs[*pgclient.Problem](t, b.result())
		if p.Kind != c.kind || p.Remedy == "" {
			t.Errorf("%s: %q, %v", c.name, p.Kind, p)
		}
		t.Logf("%s: %v", c.name, p)
	}
	b := w.bridge(w.primary, func(cfg *ingest.Config) { cfg.Postgres.DSN = w.primary.DSN("user=good password=right") })
	b.streaming()

	// The slot is taken: the second waits, and gets in when the first leaves.
	other := w.bridge(w.primary)
	b.result() // the second one's election fenced it
	other.streaming()
}

func TestSlotLostItsWAL(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{SegmentMiB: 1}, "max_slot_wal_keep_size = 1MB", "wal_keep_size = 0", "min_wal_size = 2MB", "max_wal_size = 2MB")
	b := w.bridge(w.primary)
	b.streaming()
	w.caughtUp(w.primary)
	b.end()
	for range 3 {
		w.sql(w.primary, "SET synchronous_commit = local; CREATE TABLE u AS SELECT generate_series(1, 200000); DROP TABLE u; CHECKPOINT")
	}
	err := w.bridge(w.primary).result()
	t.Log(err)
	if pgclient.KindOf(err) != pgclient.WALRemoved {
		errorAs[interface{ error }](t, err)
	}
}
