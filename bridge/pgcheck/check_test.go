package pgcheck

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
)

func TestJudgeNames(t *testing.T) {
	for value, want := range map[string]Level{
		"holdfast": OK, "HoldFast": OK, `"holdfast"`: OK, "FIRST 1 (holdfast)": OK, "ANY 1 (holdfast)": OK, "1 (holdfast)": OK,
		"": Fault, "*": Fault, "other": Fault, "other, holdfast": Fault, "ANY 1 (holdfast, other)": Fault, "FIRST 1 (holdfast, *)": Fault,
		"holdfast, other": Warning, "FIRST 2 (holdfast, other)": Warning,
	} {
		if got, remedy := judgeNames(value, "holdfast"); got != want || (got == OK) != (remedy == "") {
			t.Errorf("%q: %s %q, want %s", value, got, remedy, want)
		}
	}
}

func TestCheckOfARealServer(t *testing.T) {
	in := pgcluster.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir, err := in.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c, err := in.Init(ctx, filepath.Join(dir, "main"), pgcluster.InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	levels := func(dsn string) (Report, map[string]Level) {
		t.Helper()
		r, err := Run(ctx, pgclient.Config{DSN: dsn, ApplicationName: "holdfast"}, "holdfast")
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]Level{}
		for _, f := range r.Findings {
			m[f.Check] = f.Level
			if f.Level != OK && f.Level != Unknown && f.Remedy == "" {
				t.Errorf("%+v says nothing to do", f)
			}
		}
		return r, m
	}
	r, m := levels(c.DSN())
	if m["synchronous_standby_names"] != Fault || m["slot"] != Warning || m["in_hot_standby"] != OK || m["clients_under_our_name"] != OK || r.Worst() != Fault {
		t.Errorf("a fresh server: %+v", r)
	}
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'holdfast'", "ALTER SYSTEM SET synchronous_commit = 'remote_apply'",
		"SELECT pg_create_physical_replication_slot('holdfast', true)"} {
		if _, err := c.Query(ctx, "SET synchronous_commit = local; "+sql); err != nil && sql[0] == 'S' {
			t.Fatal(err)
		}
		if _, err := c.Query(ctx, sql); err != nil && sql[0] == 'A' {
			t.Fatal(err)
		}
	}
	if _, err := c.Query(ctx, "SET synchronous_commit = local; CREATE ROLE weak LOGIN REPLICATION"); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		if r, m = levels(c.DSN("user=weak")); m["synchronous_standby_names"] == OK || time.Now().After(deadline) {
			break
		}
	}
	if m["synchronous_standby_names"] != OK || m["synchronous_commit"] != Warning || m["slot"] != OK || m["clients_under_our_name"] != Unknown || r.Worst() != Warning {
		t.Errorf("configured, with a role that sees little: %+v", r)
	}
}
