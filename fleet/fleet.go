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

	// Place, if set, says where node id lives; without it nodes are on loopback.
	Place func(id int) Place
}

// Place is where a node lives, if that is not simply loopback.
type Place struct {
	Addr   string // where others reach its gRPC
	Listen string // where it serves gRPC itself
	HTTP   string // where it serves, and this process asks, HTTP

	// Enter, if set, calls start, which starts the process, on a thread that is
	// where the process is to be: in a network namespace, say.
	Enter func(start func() error) error
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
		place := Place{Addr: loopback(ports[2*i]), Listen: loopback(ports[2*i]), HTTP: loopback(ports[2*i+1])}
		if c.Place != nil {
			place = c.Place(id)
		}
		n := &Node{
			ID:    id,
			Addr:  place.Addr,
			HTTP:  place.HTTP,
			Dir:   filepath.Join(c.Dir, "node-"+strconv.Itoa(id)),
			Log:   filepath.Join(c.Dir, "node-"+strconv.Itoa(id)+".log"),
			enter: place.Enter,
		}
		n.command = append([]string{
			c.Binary, "acceptor", "--node-id", strconv.Itoa(id), "--listen", place.Listen, "--http", n.HTTP,
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
