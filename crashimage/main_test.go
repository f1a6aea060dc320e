package crashimage

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/blockdev"
	"github.com/seed7f3f3bb8/holdfast/leftovers"
)

var (
	images = flag.Int("images", 0, "how many crash images TestCrashImages makes; 0 = 40, 600 with HOLDFAST_DEPTH=ci, 50000 with HOLDFAST_DEPTH=long")
	seed   = flag.Uint64("seed", 1, "of the first recording")
	keep   = flag.String("keep", "", "directory for images that break a promise")
)

// program is the program under test, built once and only if it is needed.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if blockdev.Available() != nil {
		return m.Run() // whatever needs it skips, or fails where it is required
	}
	dir, err := os.MkdirTemp("", "holdfast-crashimage-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "holdfast")
	build := exec.Command("go", "build", "-o", program, "../cmd/holdfast")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// need skips where there can be no disk of our own, and fails where there must be one.
func need(t *testing.T) {
	t.Helper()
	err := blockdev.Available()
	if err == nil {
		return
	}
	if os.Getenv("HOLDFAST_REQUIRE_FUSE") == "1" {
		t.Fatalf("HOLDFAST_REQUIRE_FUSE is set, but this machine cannot: %v", err)
	}
	t.Skipf("crash images cannot be made here: %v", err)
}

func openLedger(t *testing.T) *leftovers.Ledger {
	t.Helper()
	l, err := leftovers.Open(leftovers.DefaultDir(), func(err error) { t.Log(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}
