package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/fleet"
)

// beVariable makes this test binary be the program. It does not begin as the
// program's own settings do, or each run would warn of it.
const beVariable = "BE_HOLDFAST"

func TestMain(m *testing.M) {
	if os.Getenv(beVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// postgresPatience bounds every wait; it is never a measurement.
const postgresPatience = time.Minute

// postgresWorld is a PostgreSQL and three acceptors in processes of their own,
// and the program to run against them.
type postgresWorld struct {
	*testing.T
	ctx     context.Context
	self    string
	dir     string
	fleet   *fleet.Fleet
	primary *pgcluster.Cluster
}

func newPostgresWorld(t *testing.T, settings ...string) *postgresWorld {
	t.Helper()
	in := pgcluster.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*postgresPatience)
	t.Cleanup(cancel)
	dir, err := in.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &postgresWorld{T: t, ctx: ctx, dir: dir}
	w.self, err = os.Executable()
	w.check(err)
	acceptors := filepath.Join(dir, "acceptors")
	w.check(os.Mkdir(acceptors, 0o700))
	w.fleet, err = fleet.Start(ctx, fleet.Config{Binary: w.self, Dir: acceptors, Nodes: 3, Env: append(os.Environ(), beVariable+"=1")})
	w.check(err)
	t.Cleanup(w.fleet.Kill)
	w.primary, err = in.Init(ctx, filepath.Join(dir, "primary"), pgcluster.InitOptions{SegmentMiB: 1})
	w.check(err)
	w.check(w.primary.Configure(settings...))
	t.Cleanup(w.primary.Close)
	w.check(w.primary.Start(ctx))
	return w
}

func (w *postgresWorld) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *postgresWorld) sql(sql string) string {
	w.Helper()
	rows, err := w.primary.Query(w.ctx, sql)
	if err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	if len(rows) == 0 {
		return ""
	}
	return rows[0][0]
}

// where names the acceptors and the timeline.
func (w *postgresWorld) where() []string {
	return []string{"--acceptors", strings.Join(w.fleet.Addresses(), ","), "--timeline", "prod/main"}
}

func (w *postgresWorld) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.ctx, w.self, args...)
	cmd.Env = append(os.Environ(), beVariable+"=1")
	cmd.WaitDelay = time.Second
	return cmd
}

// run runs the program to its end and compares its exit code.
func (w *postgresWorld) run(want cli.Code, args ...string) (out, talk string) {
	w.Helper()
	var o, e bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != int(want) {
		w.Errorf("holdfast %s: exit code %d, expected %d\n%s%s", strings.Join(args, " "), got, want, &o, &e)
	}
	if want != cli.OK && !strings.Contains(e.String(), "holdfast: ") {
		w.Errorf("holdfast %s: exit code %d without a reason: %q", strings.Join(args, " "), want, &e)
	}
	return o.String(), e.String()
}

// runJSON is run for a command that prints JSON.
func (w *postgresWorld) runJSON(want cli.Code, into any, args ...string) {
	w.Helper()
	out, _ := w.run(want, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		w.Errorf("holdfast %s --json: %v: %q", strings.Join(args, " "), err, out)
	}
}

// service is the program as one that runs until it is told to leave.
type service struct {
	w     *postgresWorld
	cmd   *exec.Cmd
	stdin io.Closer
	http  string
	log   *lockedBuffer
	ended chan struct{}
}

// serve starts the program with an HTTP port.
func (w *postgresWorld) serve(args ...string) *service {
	w.Helper()
	s := &service{w: w, http: freeAddress(w.T), log: &lockedBuffer{}, ended: make(chan struct{})}
	s.cmd = w.command(append(args, "--http", s.http, "--until-stdin-closes")...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	var err error
	s.stdin, err = s.cmd.StdinPipe()
	w.check(err)
	w.check(s.cmd.Start())
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	w.Cleanup(func() {
		s.stdin.Close()
		<-s.ended
		if w.Failed() {
			w.Logf("holdfast %s said:\n%s", args[0], s.log)
		}
	})
	return s
}

// exit waits for the end and compares the exit code.
func (s *service) exit(want cli.Code) {
	s.w.Helper()
	select {
	case <-s.ended:
	case <-time.After(postgresPatience):
		s.w.Fatalf("%v does not leave", s.cmd.Args[1])
	}
	if got := s.cmd.ProcessState.ExitCode(); got != int(want) {
		s.w.Errorf("%v left with exit code %d, expected %d", s.cmd.Args[1], got, want)
	}
}

// get asks the service's HTTP port.
func (s *service) get(path string) (status int, body string) {
	resp, err := http.Get("http://" + s.http + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// until waits for an answer of the service with this status and text.
func (s *service) until(path string, status int, text string) {
	s.w.Helper()
	s.w.until(path+" to say "+text, func() bool {
		got, body := s.get(path)
		return got == status && strings.Contains(body, text)
	})
}

func (w *postgresWorld) until(what string, cond func() bool) {
	w.Helper()
	for deadline := time.Now().Add(postgresPatience); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("waited for %s", what)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// lockedBuffer collects what a process says while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
