package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/bridge/walfetch"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// roleVariable makes this test binary be a part of the system instead of testing.
const roleVariable = "HOLDFAST_SYSTEM_TEST_ROLE"

var timeline = wal.TimelineID{Tenant: "prod", Timeline: "main"}

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		goleak.VerifyTestMain(m)
	case "acceptor":
		exit(beAcceptor(os.Args[1], os.Args[2], os.Args[3]))
	case "bridge":
		exit(beBridge(strings.Split(os.Args[1], ","), os.Args[2]))
	case "wal-fetch":
		os.Exit(beWALFetch(strings.Split(os.Args[1], ","), os.Args[2], os.Args[3], os.Args[4]))
	default:
		panic(role)
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		var fenced *ingest.FencedError
		if errors.As(err, &fenced) {
			os.Exit(7)
		}
		os.Exit(1)
	}
	os.Exit(0)
}

// life ends when standard input does, so that no child outlives the test, or on SIGTERM.
func life() context.Context {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	go func() { io.Copy(io.Discard, os.Stdin); cancel() }()
	return ctx
}

func stderrLogger(level zapcore.Level) *zap.Logger {
	c := zap.NewDevelopmentConfig()
	c.Level = zap.NewAtomicLevelAt(level)
	c.DisableStacktrace = true
	l, err := c.Build()
	if err != nil {
		panic(err)
	}
	return l
}

func beAcceptor(id, addr, dir string) error {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return err
	}
	counters, err := metrics.NewAcceptor(prometheus.NewRegistry(), acceptor.Reasons())
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	node, err := acceptor.New(acceptor.Config{NodeID: wal.NodeID(n), DataDir: dir, Metrics: counters, Log: stderrLogger(zap.WarnLevel)})
	if err != nil {
		return err
	}
	ctx := life()
	go node.Serve(l)
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return node.Shutdown(ctx)
}

func beBridge(acceptors []string, dsn string) error {
	log := stderrLogger(zap.InfoLevel)
	q, err := quorum.New(quorum.Config{Acceptors: acceptors, Timeline: timeline, Logger: log})
	if err != nil {
		return err
	}
	defer q.Close()
	return ingest.New(ingest.Config{Postgres: pgclient.Config{DSN: dsn}, Log: q, Logger: log}).Run(life())
}

func beWALFetch(acceptors []string, mode, name, target string) int {
	q, err := quorum.New(quorum.Config{Acceptors: acceptors, Timeline: timeline})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	defer q.Close()
	f := &walfetch.Fetcher{Source: q, Patience: 5 * time.Second}
	if mode == "standby" {
		f.Mode = walfetch.Standby
	}
	outcome, err := f.Fetch(context.Background(), name, target)
	fmt.Fprintln(os.Stderr, "wal-fetch", name, outcome.ExitStatus(), err)
	return outcome.ExitStatus()
}

// process is this binary in one of its roles.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
}

func launch(binary, role, log string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, stdin, make(chan struct{})}
	go func() { cmd.Wait(); close(p.done) }()
	return p, nil
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
	p.stdin.Close()
}
