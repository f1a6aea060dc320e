package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
)

// Config says what to run.
type Config struct {
	Binary string   // path of the holdfast binary
	Dir    string   // data and logs of all nodes
	Nodes  int      // how many acceptors
	Args   []string // further arguments of each "acceptor" command
	Env    []string // environment of each; nil is the parent's
}

// Fleet is a set of acceptors on loopback.
type Fleet struct {
	Nodes []*Node
}

// Start starts all nodes and waits until each says that it is ready. If one
// does not, all are killed.
func Start(ctx context.Context, c Config) (*Fleet, error) {
	f := &Fleet{}
	ports, err := freePorts(2 * c.Nodes)
	if err != nil {
		return nil, err
	}
	for i := range c.Nodes {
		id := i + 1
		n := &Node{
			ID:   id,
			Addr: loopback(ports[2*i]),
			HTTP: loopback(ports[2*i+1]),
			Dir:  filepath.Join(c.Dir, "node-"+strconv.Itoa(id)),
			Log:  filepath.Join(c.Dir, "node-"+strconv.Itoa(id)+".log"),
		}
		n.command = append([]string{
			c.Binary, "acceptor", "--node-id", strconv.Itoa(id), "--listen", n.Addr, "--http", n.HTTP,
			"--data-dir", n.Dir, "--until-stdin-closes",
		}, c.Args...)
		n.env = c.Env
		f.Nodes = append(f.Nodes, n)
	}
	for _, n := range f.Nodes {
		if err := n.Start(ctx); err != nil {
			f.Kill()
			return nil, err
		}
	}
	return f, nil
}

// Addresses lists where the nodes serve gRPC.
func (f *Fleet) Addresses() []string {
	addrs := make([]string, len(f.Nodes))
	for i, n := range f.Nodes {
		addrs[i] = n.Addr
	}
	return addrs
}

// Stop asks every running node to leave and waits for all of them; one that
// does not is killed, which is an error.
func (f *Fleet) Stop() error {
	errs := make(chan error, len(f.Nodes))
	for _, n := range f.Nodes {
		go func() { errs <- n.Stop() }()
	}
	var all error
	for range f.Nodes {
		all = errors.Join(all, <-errs)
	}
	return all
}

// Kill ends every node at once.
func (f *Fleet) Kill() {
	for _, n := range f.Nodes {
		n.Kill()
	}
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
