package nemesis

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var (
	duration = flag.Duration("nemesis", 0, "how long TestNemesis breaks things; 0 = 20 s, or 5 min with HOLDFAST_DEPTH=ci, 2 h with HOLDFAST_DEPTH=long")
	seed     = flag.Uint64("seed", uint64(time.Now().Unix()), "of the schedule")
)

// program is the program under test, built once.
var program string

func TestMain(m *testing.M) {
	ClientMain()
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfast-nemesis-bin-")
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
