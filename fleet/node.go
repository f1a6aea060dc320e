package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// How long a node may take.
const (
	readyWait = 60 * time.Second // recovery of a large directory included
	readyPoll = 20 * time.Millisecond
	stopWait  = 10 * time.Second // it promises five
)

// Node is one acceptor process, or the place where it ran. Its methods may be
// called from one goroutine at a time, except PID and Running.
type Node struct {
	ID   int
	Addr string // gRPC
	HTTP string
	Dir  string // data
	Log  string // its standard error

	command []string
	env     []string
	enter   func(start func() error) error // nil: started from where this process is

	mu      sync.Mutex
	process *process // nil while it does not run
}

// process is one life of a node.
type process struct {
	cmd   *exec.Cmd
	stdin *os.File      // closing it makes the child leave
	ended chan struct{} // closed when it has been waited for and its log is complete
	err   error         // valid once ended is closed
	tail  *tail         // the end of what it wrote to standard error
}

// ErrRunning: the node runs already.
var ErrRunning = errors.New("the node runs already")

// Launch starts the process and does not wait until it is ready.
func (n *Node) Launch() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != nil && n.process.alive() {
		return ErrRunning
	}
	p := &process{ended: make(chan struct{}), tail: &tail{}}
	logs, err := collect(n.Log, p.tail)
	if err != nil {
		return err
	}
	stdin, keep, err := os.Pipe()
	if err != nil {
		logs.abandon()
		return err
	}
	p.stdin = keep
	p.cmd = exec.Command(n.command[0], n.command[1:]...)
	p.cmd.Env = n.env
	p.cmd.Stdin = stdin
	p.cmd.Stderr = logs.child
	// Not in the terminal's foreground group: an interrupt is for the parent to deal with.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if n.enter != nil {
		err = n.enter(p.cmd.Start)
	} else {
		err = p.cmd.Start()
	}
	_ = stdin.Close()
	if err != nil {
		_ = keep.Close()
		logs.abandon()
		return fmt.Errorf("node %d: %w", n.ID, err)
	}
	logs.started()
	go func() {
		p.err = p.cmd.Wait()
		_ = keep.Close()
		logs.wait()
		close(p.ended)
	}()
	n.process = p
	return nil
}

// Start starts the process and waits until it says that it is ready.
func (n *Node) Start(ctx context.Context) error {
	if err := n.Launch(); err != nil {
		return err
	}
	return n.Ready(ctx)
}

// Ready waits until the process says that it is ready.
func (n *Node) Ready(ctx context.Context) error {
	p := n.current()
	if p == nil {
		return fmt.Errorf("node %d does not run", n.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		if response, err := client.Get("http://" + n.HTTP + "/readyz"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.ended:
			return fmt.Errorf("node %d ended before it was ready: %v\n%s", n.ID, p.err, p.tail)
		case <-ctx.Done():
			return fmt.Errorf("node %d is not ready: %w\n%s", n.ID, ctx.Err(), p.tail)
		case <-poll.C:
		}
	}
}

// Kill ends the process at once, as kill -9 does, and waits until it is gone.
func (n *Node) Kill() {
	if p := n.current(); p != nil {
		_ = p.cmd.Process.Kill() // it may have ended by itself
		<-p.ended
	}
}

// Stop asks the process to leave and waits. If it stays it is killed.
func (n *Node) Stop() error {
	p := n.current()
	if p == nil || !p.alive() {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // a paused one cannot leave
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopWait):
		n.Kill()
		return fmt.Errorf("node %d did not leave within %v and was killed", n.ID, stopWait)
	}
	if p.err != nil {
		return fmt.Errorf("node %d: %w\n%s", n.ID, p.err, p.tail)
	}
	return nil
}

// Pause stops the process where it is, as SIGSTOP does; Resume lets it go on.
func (n *Node) Pause() error { return n.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (n *Node) Resume() error { return n.signal(syscall.SIGCONT) }

func (n *Node) signal(s os.Signal) error {
	p := n.current()
	if p == nil {
		return fmt.Errorf("node %d does not run", n.ID)
	}
	return p.cmd.Process.Signal(s)
}

// Running reports whether the process runs.
func (n *Node) Running() bool {
	p := n.current()
	return p != nil && p.alive()
}

// PID is the process id of the running or last process, 0 if there was none.
func (n *Node) PID() int {
	if p := n.current(); p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

// CPU is the processor time of the last process that has ended.
func (n *Node) CPU() time.Duration {
	p := n.current()
	if p == nil || p.alive() || p.cmd.ProcessState == nil {
		return 0
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

func (n *Node) current() *process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}
