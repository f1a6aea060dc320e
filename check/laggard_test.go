package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// laggardBytes is more than the proposer's window: what a stopped acceptor
// lacks then cannot come from the proposer's memory any more.
const laggardBytes = 192 << 20

// laggardRSSMiB bounds the proposer's memory: the window of 64 MiB, twice for
// the garbage collector, and room for the rest of the program.
const laggardRSSMiB = 256

// TestStoppedAcceptorHoldsNobody: an acceptor that hangs without ending must
// neither stop the commits of the other two nor fill the proposer's memory, and
// is filled from another acceptor's disk when it goes on.
func TestStoppedAcceptorHoldsNobody(t *testing.T) {
	f, c := start(t)
	create(t, c, 0)
	ackLog := filepath.Join(t.TempDir(), "acks")
	load := spawn(t, f, "load", "--size", "64KiB", "--concurrency", "32", "--duration", "1m", "--settle", testWait.String(), "--ack-log", ackLog)
	eventually(t, "the load has begun", func() bool { return committed(t.Context(), c) > 0 })
	hung := f.Nodes[2]
	if err := hung.Pause(); err != nil {
		t.Fatal(err)
	}
	from := committed(t.Context(), c)
	eventually(t, "commits go on far beyond the window", func() bool { return committed(t.Context(), c) > from+wal.LSN(laggardBytes) })
	peak := peakRSS(t, load.cmd.Process.Pid)
	t.Logf("the proposer's memory peaked at %d MiB", peak)
	if peak > laggardRSSMiB && !raced() {
		t.Errorf("more than %d MiB", laggardRSSMiB)
	}
	if err := hung.Resume(); err != nil {
		t.Fatal(err)
	}
	load.interrupt(t)
	must(t, f, "load", "--duration", "100ms", "--settle", testWait.String())
	audited(t, c, ackLog)
}

// peakRSS is the most memory that a process has held, MiB.
func peakRSS(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return n >> 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
