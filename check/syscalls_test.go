package check

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// What is counted from outside. The second group must not grow with the number
// of appends: making a file or a wait object per append is what makes logs slow.
const (
	tracedSyncs = "fdatasync,fsync,sync_file_range,syncfs"
	tracedRest  = "openat,open,creat,close,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,ftruncate,fallocate,epoll_create,epoll_create1,timerfd_create,eventfd,eventfd2,pipe2"
)

// Making a segment of 64 MiB, the largest here, costs sixteen syncs of 4 MiB of
// zeroes each, and a few more: the directory it came from and the one it went
// to. So many are allowed for each segment that was made, and none for any other reason.
const syncsPerSegmentMax = 64/4 + 4

// TestOneSyncPerBatch counts an acceptor's system calls from outside while it is
// under load. A second fdatasync per batch, or a file or wait object per append,
// would halve the speed and show here, whatever the metrics say.
func TestOneSyncPerBatch(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		missing(t, "strace is not installed")
	}
	f, c := start(t)
	create(t, c, 0)
	p := open(t, f.Addresses())
	load := workload.Load{Size: 8 << 10, Concurrency: 64, Duration: time.Second, Payloads: workload.NewPayloads(1)}
	if _, err := load.Drive(t.Context(), p, new(workload.Meter)); err != nil { // segments have grown, connections stand
		t.Fatal(err)
	}
	settle(t, p)
	node := f.Nodes[0]
	trace := attach(t, node.PID())
	before := samples(t, node)
	load.Duration = 3 * time.Second
	var meter workload.Meter
	if _, err := load.Drive(t.Context(), p, &meter); err != nil {
		t.Fatal(err)
	}
	settle(t, p)
	after := samples(t, node)
	counts := trace.stop(t)

	batches := after["holdfast_flush_seconds_count"] - before["holdfast_flush_seconds_count"]
	segments, made := 0.0, 0.0
	for name := range after {
		if strings.HasPrefix(name, "holdfast_segment_operations_total") {
			segments += after[name] - before[name]
			if !strings.Contains(name, "rotate") {
				made += after[name] - before[name]
			}
		}
	}
	syncs, rest := 0.0, 0.0
	for name, n := range counts {
		if slices.Contains(strings.Split(tracedSyncs, ","), name) {
			syncs += float64(n)
		} else {
			rest += float64(n)
		}
	}
	acked := float64(meter.Acked())
	t.Logf("%.0f appends acknowledged, %.0f batches, %.0f segment operations, %.0f segments made; calls %v", acked, batches, segments, made, counts)
	if batches < 50 || acked < 10*batches/2 {
		t.Fatalf("%.0f batches for %.0f appends: too little to say anything", batches, acked)
	}
	// What happens at the edges of the counted time is not exactly the same for both counts.
	const edge = 6
	if extra := syncs - batches; extra < -edge || extra > syncsPerSegmentMax*made+edge {
		t.Errorf("%.0f syncs for %.0f batches and %.0f segments made: expected one per batch, and at most %d per segment made", syncs, batches, made, syncsPerSegmentMax)
	}
	if most := 12*segments + 40; rest > most {
		t.Errorf("%.0f calls that make or close files or wait objects, at most %.0f are explained by segments; they must not come with appends", rest, most)
	}
	for name, n := range counts {
		if strings.HasPrefix(name, "epoll_create") || strings.HasPrefix(name, "timerfd") || strings.HasPrefix(name, "eventfd") {
			t.Errorf("%d %s: a wait object was made while nothing but appends came", n, name)
		}
	}
}

// samples asks a node for its metrics.
func samples(t *testing.T, n *fleet.Node) map[string]float64 {
	t.Helper()
	m, err := n.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tracer is strace on a running process.
type tracer struct {
	cmd *exec.Cmd
	out string
}

// attach begins to count a process's calls and returns when it does.
func attach(t *testing.T, pid int) *tracer {
	t.Helper()
	out := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-o", out, "-e", "trace="+tracedSyncs+","+tracedRest, "-p", fmt.Sprint(pid))
	says, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(says)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "attached") {
			go func() {
				for lines.Scan() {
				}
			}()
			return &tracer{cmd, out}
		}
	}
	_ = cmd.Wait()
	missing(t, "strace cannot attach here (is ptrace allowed?)")
	return nil
}

var tracedCall = regexp.MustCompile(`^\d+ +([a-z_0-9]+)\(`)

// stop lets go of the process and counts.
func (x *tracer) stop(t *testing.T) map[string]int {
	t.Helper()
	_ = x.cmd.Process.Signal(syscall.SIGINT)
	_ = x.cmd.Wait() // it ends by the signal that we sent
	text, err := os.ReadFile(x.out)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if m := tracedCall.FindStringSubmatch(line); m != nil {
			counts[m[1]]++
		}
	}
	return counts
}
