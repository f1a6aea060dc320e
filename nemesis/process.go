package nemesis

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/seed7f3f3bb8/holdfast/leftovers"
)

// client is a proposer process.
type client struct {
	w       *world
	at      site
	history string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	ended   chan struct{}
	id      string // in the ledger
}

// startClient starts a proposer at s, in this round's timeline.
func (w *world) startClient(s site) (*client, error) {
	n := len(w.histories)
	c := &client{w: w, at: s, history: filepath.Join(w.dir, fmt.Sprintf("round-%d-client-%d", w.round, n)), ended: make(chan struct{})}
	config := clientConfig{
		Acceptors: w.outer(), Timeline: w.timeline.String(), Local: w.net.local(s), History: c.history,
		Seed: w.rng.Uint64(), Appenders: clientAppenders, BytesMax: clientBytesMax, Pause: clientPause,
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	c.cmd = exec.Command(w.self)
	c.cmd.Env = append(os.Environ(), clientEnv+"="+string(text))
	c.cmd.Stderr = w.clientLog
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := w.net.enter(s, c.cmd.Start); err != nil {
		return nil, err
	}
	go func() {
		_ = c.cmd.Wait()
		close(c.ended)
	}()
	w.histories = append(w.histories, c.history)
	w.clients = append(w.clients, c)
	if c.id, err = leftovers.Identity(c.cmd.Process.Pid); err != nil {
		return c, err
	}
	return c, w.ledger.Take(leftovers.Process, c.id)
}

// What a client does; together it is some hundred appends a second, so that a
// round's history can be judged in seconds.
const (
	clientAppenders = 10
	clientBytesMax  = 16 << 10
	clientPause     = 4 * time.Millisecond
)

func (c *client) signal(s syscall.Signal) { _ = c.cmd.Process.Signal(s) }

// kill ends it at once.
func (c *client) kill() {
	c.signal(syscall.SIGKILL)
	c.gone()
}

// leave lets it finish the calls that are on their way.
func (c *client) leave() {
	c.signal(syscall.SIGCONT)
	_ = c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(lastCalls + 8*time.Second):
		c.signal(syscall.SIGKILL)
	}
	c.gone()
}

func (c *client) gone() {
	<-c.ended
	_ = c.stdin.Close()
	_ = c.w.ledger.Forget(leftovers.Process, c.id)
	for i, x := range c.w.clients {
		if x == c {
			c.w.clients = append(c.w.clients[:i], c.w.clients[i+1:]...)
			return
		}
	}
}

// leaveAll ends every client of the round.
func (w *world) leaveAll() {
	for len(w.clients) > 0 {
		w.clients[0].leave()
	}
}

// self is the program that ClientMain is called in.
func self() (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", errors.Join(errors.New("this program cannot start itself as a client"), err)
	}
	return name, nil
}
