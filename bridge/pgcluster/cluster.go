package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Cluster is one data directory and, while it runs, its server.
type Cluster struct {
	Installation
	Dir  string // the data directory
	Port int

	wrapper *exec.Cmd // nil while stopped
	exited  chan struct{}
	leash   *os.File // the server ends when this is closed
}

// InitOptions are what initdb is told.
type InitOptions struct {
	SegmentMiB int // 0 = 16
	Checksums  bool
	HBA        []string // lines of pg_hba.conf; none = trust everyone on loopback
}

// Init makes a cluster in dir, which must not exist. It is not started. The
// superuser is called postgres. Changes to the settings go through Configure.
func (in Installation) Init(ctx context.Context, dir string, o InitOptions) (*Cluster, error) {
	args := []string{"-D", dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"}
	if o.SegmentMiB != 0 {
		args = append(args, "--wal-segsize="+strconv.Itoa(o.SegmentMiB))
	}
	if o.Checksums {
		args = append(args, "--data-checksums")
	}
	if _, err := in.Run(ctx, "initdb", args...); err != nil {
		return nil, err
	}
	c := &Cluster{Installation: in, Dir: dir}
	if len(o.HBA) > 0 {
		if err := os.WriteFile(filepath.Join(dir, "pg_hba.conf"), []byte(strings.Join(o.HBA, "\n")+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	// Room for small machines; no socket files; nothing that needs the time of day.
	return c, c.Configure("shared_buffers = 32MB", "max_connections = 100", "unix_socket_directories = ''",
		"log_min_messages = warning", "log_line_prefix = '%m [%p] %a '", "max_wal_size = 4GB", "autovacuum_naptime = 1d")
}

// Open is a cluster in a data directory that is there already: a base backup or a copy.
func (in Installation) Open(dir string) *Cluster { return &Cluster{Installation: in, Dir: dir} }

// Configure appends lines to postgresql.conf; later lines win. A running server
// must be reloaded or restarted.
func (c *Cluster) Configure(lines ...string) error {
	f, err := os.OpenFile(filepath.Join(c.Dir, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// leashScript runs the server until its standard input ends, then shuts it down at once.
const leashScript = `exec 3<&0 </dev/null
"$@" 3<&- &
pid=$!
( read -r _ <&3; kill -QUIT "$pid" ) 2>/dev/null &
exec 3<&-
wait "$pid"`

// Start starts the server on a free loopback port, the same as before if it
// has run already, and returns when it accepts connections. In archive recovery
// that may take long: bound it with ctx.
func (c *Cluster) Start(ctx context.Context) error {
	for {
		before := c.logBytes()
		err := c.start(ctx)
		// After a kill the old server's children take a moment to notice.
		if err == nil || ctx.Err() != nil || !strings.Contains(c.LogTail(c.logBytes()-before), "pre-existing shared memory block") {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (c *Cluster) logBytes() int {
	info, err := os.Stat(c.LogPath())
	if err != nil {
		return 0
	}
	return int(info.Size())
}

func (c *Cluster) start(ctx context.Context) error {
	if c.wrapper != nil {
		return errors.New("the server runs already")
	}
	if c.Port == 0 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		c.Port = l.Addr().(*net.TCPAddr).Port
		l.Close()
	}
	logFile, err := os.OpenFile(c.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer logFile.Close()
	read, leash, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd := c.Command(context.Background(), "postgres", "-D", c.Dir, "-h", "127.0.0.1", "-p", strconv.Itoa(c.Port))
	cmd.Args = append([]string{"sh", "-c", leashScript, "sh"}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	cmd.Path = "/bin/sh"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = read, logFile, logFile
	if err := cmd.Start(); err != nil {
		leash.Close()
		return err
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	c.wrapper, c.leash, c.exited = cmd, leash, exited
	for {
		if c.accepts(ctx) {
			return nil
		}
		select {
		case <-exited:
			c.gone()
			return fmt.Errorf("the server ended while starting; its log ends with:\n%s", c.LogTail(2000))
		case <-ctx.Done():
			return fmt.Errorf("the server does not accept connections: %w; its log ends with:\n%s", ctx.Err(), c.LogTail(2000))
		case <-time.After(30 * time.Millisecond):
		}
	}
}

func (c *Cluster) accepts(ctx context.Context) bool {
	conn, err := pgconn.Connect(ctx, c.DSN("connect_timeout=2"))
	if err != nil {
		return false
	}
	conn.Close(ctx)
	return true
}

// LogPath is the server's log file, beside the data directory.
func (c *Cluster) LogPath() string { return c.Dir + ".log" }

// LogTail is the end of the server's log.
func (c *Cluster) LogTail(bytes int) string {
	b, _ := os.ReadFile(c.LogPath())
	return string(b[max(0, len(b)-bytes):])
}

// PID is the server's process id, 0 if there is none.
func (c *Cluster) PID() int {
	b, err := os.ReadFile(filepath.Join(c.Dir, "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, _ := strconv.Atoi(line)
	return pid
}

// Running reports whether a started server has not ended yet.
func (c *Cluster) Running() bool {
	if c.wrapper == nil {
		return false
	}
	select {
	case <-c.exited:
		c.gone()
		return false
	default:
		return true
	}
}

func (c *Cluster) gone() {
	c.leash.Close()
	c.wrapper = nil
}

// The ways to stop a server.
const (
	Smart     = syscall.SIGTERM
	Fast      = syscall.SIGINT
	Immediate = syscall.SIGQUIT
	Kill      = syscall.SIGKILL // the postmaster alone; the others notice and leave
)

// Stop ends the server and returns when it has ended. A stopped server is no error.
func (c *Cluster) Stop(ctx context.Context, how syscall.Signal) error {
	if !c.Running() {
		return nil
	}
	if pid := c.PID(); pid > 0 {
		if err := syscall.Kill(pid, how); err != nil && err != syscall.ESRCH {
			return err
		}
	}
	select {
	case <-c.exited:
		c.gone()
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the server has not ended after signal %v: %w", how, ctx.Err())
	}
}

// Close ends the server at once, whatever it does.
func (c *Cluster) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if c.Stop(ctx, Immediate) != nil {
		c.Stop(ctx, Kill)
	}
}

// Promote ends recovery and waits until the server is a primary.
func (c *Cluster) Promote(ctx context.Context) error {
	_, err := c.Query(ctx, "SELECT pg_promote(true, 60)")
	return err
}

// Reload makes the server read its settings again.
func (c *Cluster) Reload(ctx context.Context) error {
	_, err := c.Query(ctx, "SELECT pg_reload_conf()")
	return err
}

// DSN is a connection string for the superuser; more settings may follow.
func (c *Cluster) DSN(more ...string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=disable %s", c.Port, strings.Join(more, " "))
}

// Query runs SQL on a connection of its own and returns the last result's rows.
func (c *Cluster) Query(ctx context.Context, sql string) ([][]string, error) {
	conn, err := pgconn.Connect(ctx, c.DSN())
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	var rows [][]string
	for _, r := range results[len(results)-1].Rows {
		row := make([]string, len(r))
		for i, v := range r {
			row[i] = string(v)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Value runs SQL and returns the first column of its first row.
func (c *Cluster) Value(ctx context.Context, sql string) (string, error) {
	rows, err := c.Query(ctx, sql)
	if err != nil {
		return "", err
	}
	if len(rows) == 0 || len(rows[0]) == 0 {
		return "", fmt.Errorf("%s: no rows", sql)
	}
	return rows[0][0], nil
}

// BaseBackup copies the running cluster into dir, without WAL unless withWAL.
func (c *Cluster) BaseBackup(ctx context.Context, dir string, withWAL bool) (*Cluster, error) {
	method := "none"
	if withWAL {
		method = "fetch"
	}
	_, err := c.Run(ctx, "pg_basebackup", "-d", c.DSN(), "-D", dir, "-X", method, "-c", "fast", "--no-sync")
	if err != nil {
		return nil, err
	}
	return c.Open(dir), nil
}
