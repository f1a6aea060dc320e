package proto

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGenerated makes the code again and compares it with what is checked in.
// It builds the pinned tools, which takes a minute the first time, so it runs
// only when HOLDFAST_PROTO_CHECK is set: see the Makefile's proto-check.
func TestGenerated(t *testing.T) {
	if os.Getenv("HOLDFAST_PROTO_CHECK") == "" {
		t.Skip("HOLDFAST_PROTO_CHECK is not set")
	}
	dir := t.TempDir()
	for _, args := range [][]string{{"lint"}, {"format", "-d", "--exit-code"}, {"generate", "-o", dir}} {
		cmd := exec.Command("go", append([]string{"tool", "-modfile=tools/go.mod", "buf"}, args...)...)
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("buf %s: %v\n%s", args[0], err, out)
		}
	}
	made, err := filepath.Glob(filepath.Join(dir, "proto/holdfast/v1/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob("holdfast/v1/*.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(made) == 0 || len(made) != len(kept) {
		t.Errorf("buf generate makes %d files, %d are checked in; run go generate ./proto", len(made), len(kept))
	}
	for _, path := range made {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("holdfast/v1", filepath.Base(path)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("holdfast/v1/%s is not what buf generate makes; run go generate ./proto (%v)", filepath.Base(path), err)
		}
	}
}
