package check

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfast-check-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "holdfast")
	build := exec.Command("go", "build", "-o", binary, "../cmd/holdfast")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if raced() {
		// A race anywhere in an acceptor or a client ends it with an exit code.
		build = exec.Command("go", "build", "-race", "-o", binary, "../cmd/holdfast")
	}
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// long reports whether the long forms are asked for.
func long() bool { return os.Getenv("HOLDFAST_CHECK") == "long" }

// raced reports whether acceptors and clients run with the race detector, which
// takes several times the memory and the time.
func raced() bool { return os.Getenv("HOLDFAST_CHECK_RACE") != "" }

// missing skips a test that cannot run here, or fails it where everything must be there.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// testWait bounds every wait of these tests for something that must happen.
const testWait = 2 * time.Minute

var timeline = wal.TimelineID{Tenant: "check", Timeline: "main"}

// start starts three acceptors and a client of all of them.
func start(t *testing.T, args ...string) (*fleet.Fleet, *admin.Client) {
	t.Helper()
	f, err := fleet.Start(t.Context(), fleet.Config{Binary: binary, Dir: t.TempDir(), Nodes: 3, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Kill()
		for _, n := range f.Nodes {
			text, _ := os.ReadFile(n.Log)
			for _, bad := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: "} {
				if at := bytes.Index(text, []byte(bad)); at >= 0 {
					t.Errorf("node %d: %s", n.ID, text[at:min(len(text), at+4000)])
				}
			}
			if t.Failed() {
				t.Logf("end of node %d's log:\n%s", n.ID, text[max(0, len(text)-2000):])
			}
		}
	})
	c, err := admin.Dial(f.Addresses())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return f, c
}

// create makes the timeline of these tests.
func create(t *testing.T, c *admin.Client, first wal.LSN) {
	t.Helper()
	if _, _, err := c.Create(t.Context(), admin.Creation{Timeline: timeline, First: first}); err != nil {
		t.Fatal(err)
	}
}

// committed is the highest commit LSN that an acceptor knows of.
func committed(ctx context.Context, c *admin.Client) (lsn wal.LSN) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, a := range c.Timelines(ctx, timeline) {
		if a.Err == nil {
			lsn = max(lsn, a.Value.Commit)
		}
	}
	return lsn
}

// eventually calls look until it says true.
func eventually(t *testing.T, what string, look func() bool) {
	t.Helper()
	deadline := time.Now().Add(testWait)
	for !look() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen within %v: %s", testWait, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// audited reads the acks back from every acceptor and fails unless nothing is
// missing and all are identical.
func audited(t *testing.T, c *admin.Client, ackLog string) *workload.AuditResult {
	t.Helper()
	acks, err := workload.ReadAcksFile(ackLog)
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&workload.Audit{Cluster: c, Timeline: timeline, Acks: acks, AnswerWait: 10 * time.Second}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Missing != 0 || !r.Identical || r.Acked == 0 {
		t.Fatalf("audit: %d acknowledged, %d missing, identical %v: %+v", r.Acked, r.Missing, r.Identical, r.Replicas)
	}
	return r
}

// command is a holdfast client command that runs as a process of its own.
type command struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
	done     chan struct{}
}

// spawn starts a client command against the fleet.
func spawn(t *testing.T, f *fleet.Fleet, args ...string) *command {
	t.Helper()
	c := &command{cmd: exec.Command(binary, args...), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), "HOLDFAST_ACCEPTORS="+joined(f), "HOLDFAST_TIMELINE="+timeline.String())
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // the exit code says it
		close(c.done)
	}()
	t.Cleanup(c.kill)
	return c
}

func joined(f *fleet.Fleet) string {
	s := ""
	for _, a := range f.Addresses() {
		s += "," + a
	}
	return s[1:]
}

// kill ends the command as kill -9 does.
func (c *command) kill() {
	_ = c.cmd.Process.Kill() // it may be over
	<-c.done
}

// interrupt ends the command as Ctrl-C does and waits for it.
func (c *command) interrupt(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	c.code(t)
}

// code waits for the command's end and returns its exit code.
func (c *command) code(t *testing.T) int {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(testWait):
		c.kill()
		t.Fatalf("holdfast %v did not end: %s", c.cmd.Args[1:], &c.err)
	}
	return c.cmd.ProcessState.ExitCode()
}

// must runs a client command that has to succeed and returns its standard output.
func must(t *testing.T, f *fleet.Fleet, args ...string) []byte {
	t.Helper()
	c := spawn(t, f, args...)
	if code := c.code(t); code != 0 {
		t.Fatalf("holdfast %v: exit code %d\n%s", args, code, &c.err)
	}
	return c.out.Bytes()
}
