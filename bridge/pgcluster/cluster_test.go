package pgcluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClusterLives(t *testing.T) {
	in := Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir, err := in.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c, err := in.Init(ctx, filepath.Join(dir, "main"), InitOptions{SegmentMiB: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Value(ctx, "SHOW wal_segment_size"); v != "1MB" || err != nil {
		t.Fatal(v, err)
	}
	if err := c.Stop(ctx, Kill); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(ctx); err != nil {
		t.Fatal("after kill -9:", err)
	}
	backup, err := c.BaseBackup(ctx, filepath.Join(dir, "copy"), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(ctx, Fast); err != nil {
		t.Fatal(err)
	}
	defer backup.Close()
	if err := backup.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestServerEndsWithItsStarter closes the leash as the end of the process would.
func TestServerEndsWithItsStarter(t *testing.T) {
	in := Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir, _ := in.TempDir()
	defer os.RemoveAll(dir)
	c, err := in.Init(ctx, filepath.Join(dir, "main"), InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	c.leash.Close()
	select {
	case <-c.exited:
	case <-ctx.Done():
		t.Fatal("the server outlives its starter")
	}
}

// fakeT records what Need does without PostgreSQL.
type fakeT struct{ skipped, failed bool }

func (f *fakeT) Helper()      {}
func (f *fakeT) Skip(...any)  { f.skipped = true; panic(f) }
func (f *fakeT) Fatal(...any) { f.failed = true; panic(f) }

func TestNeedFailsInCI(t *testing.T) {
	t.Setenv(BinVariable, "/nonexistent")
	for ci, wantFailed := range map[string]bool{"true": true, "": false} {
		t.Setenv("CI", ci)
		f := &fakeT{}
		func() {
			defer func() { recover() }()
			Need(f)
		}()
		if f.failed != wantFailed || f.skipped == wantFailed {
			t.Errorf("CI=%q: %+v", ci, *f)
		}
	}
	if _, err := Find(); !errors.Is(err, ErrNotInstalled) {
		t.Error(err)
	}
}
