package fleet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// The test binary plays the child: what a child does is not fleet's business.
const (
	childEnv  = "HOLDFAST_FLEET_CHILD"
	childGood = "good" // ready at once, leaves when asked or when stdin closes
	childDies = "dies" // says why and ends
	childLoud = "loud" // writes a long log first
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(childEnv); kind != "" {
		os.Exit(child(kind))
	}
	os.Exit(m.Run())
}

func child(kind string) int {
	if kind == childDies {
		fmt.Fprintln(os.Stderr, "no disk today")
		return 3
	}
	if kind == childLoud {
		for i := range 20_000 {
			fmt.Fprintf(os.Stderr, "line %d of a log that does not fit into a pipe of 64 KiB\n", i)
		}
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(closed)
	}()
	for i, arg := range os.Args {
		if arg != "--http" {
			continue
		}
		l, err := net.Listen("tcp", os.Args[i+1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				fmt.Fprint(w, "# HELP x y\nx_total 7\ny{op=\"a b\"} 1.5\nz NaN\n")
			}
		}))
	}
	select {
	case <-asked:
	case <-closed:
	}
	return 0
}

func one(t *testing.T, kind string) (*Fleet, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Start(t.Context(), Config{Binary: self, Dir: t.TempDir(), Nodes: 1, Env: append(os.Environ(), childEnv+"="+kind)})
	if f != nil {
		t.Cleanup(f.Kill)
	}
	return f, err
}

func TestLife(t *testing.T) {
	f, err := one(t, childGood)
	if err != nil {
		t.Fatal(err)
	}
	n := f.Nodes[0]
	first := n.PID()
	if !n.Running() || first == 0 {
		t.Fatal("it does not run")
	}
	if err := n.Launch(); !errors.Is(err, ErrRunning) {
		t.Errorf("a second start: %v", err)
	}
	m, err := n.Metrics(t.Context())
	if err != nil || m["x_total"] != 7 || m[`y{op="a b"}`] != 1.5 {
		t.Errorf("metrics %v, %v", m, err)
	}
	n.Kill()
	n.Kill()
	if n.Running() {
		t.Error("it runs after Kill")
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n.PID() == first {
		t.Error("it is the same process after a restart")
	}
	if err := n.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := f.Stop(); err != nil { // a paused one can be asked to leave, too
		t.Error(err)
	}
	if err := f.Stop(); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestChildLeavesWithItsParent(t *testing.T) {
	f, err := one(t, childGood)
	if err != nil {
		t.Fatal(err)
	}
	p := f.Nodes[0].current()
	_ = p.stdin.Close() // what the kernel does when the parent is killed
	<-p.ended
	if p.err != nil {
		t.Errorf("it ended with %v", p.err)
	}
}

func TestStartSaysWhatTheChildSaid(t *testing.T) {
	_, err := one(t, childDies)
	if err == nil || !strings.Contains(err.Error(), "no disk today") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("the error is %v", err)
	}
}

func TestLogsAreWhole(t *testing.T) {
	f, err := one(t, childLoud)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.Nodes[0].Log)
	if err != nil || strings.Count(string(text), "\n") != 20_000 || !strings.HasSuffix(string(text), "line 19999 of a log that does not fit into a pipe of 64 KiB\n") {
		t.Errorf("%v, %d lines", err, strings.Count(string(text), "\n"))
	}
}

func TestPortsAreDifferentAndOutOfTheWay(t *testing.T) {
	ports, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] || p < portMin || p >= portMax {
			t.Errorf("port %d", p)
		}
		seen[p] = true
	}
}
