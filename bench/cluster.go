package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// cluster is three acceptors in this process, over loopback and a real disk, with
// a fault injector before each one's files. What needs separate processes, CPU
// above all, is measured with "holdfast load --spawn" instead.
type cluster struct {
	members [3]*memberNode
}

type memberNode struct {
	config acceptor.Config
	addr   string
	disk   *vfs.Fault

	node     *acceptor.Node // nil while it does not run
	registry *prometheus.Registry
}

// startCluster starts three acceptors in dir; tune, if set, changes their configuration.
func startCluster(dir string, tune func(*acceptor.Config)) (*cluster, error) {
	// Three acceptors sync their files in one process: see floorCell.
	c := &cluster{}
	runtime.GOMAXPROCS(2*len(c.members) + runtime.NumCPU())
	for i := range c.members {
		m := &memberNode{addr: "127.0.0.1:0", disk: vfs.NewFault(vfs.OS{})}
		m.config = acceptor.Config{NodeID: wal.NodeID(i + 1), DataDir: filepath.Join(dir, fmt.Sprintf("node-%d", i+1)), FS: m.disk}
		if tune != nil {
			tune(&m.config)
		}
		c.members[i] = m
		if err := m.start(); err != nil {
			return nil, errors.Join(err, c.stop())
		}
	}
	return c, nil
}

// start starts the acceptor, at the same address as before.
func (m *memberNode) start() error {
	m.registry = prometheus.NewRegistry()
	var err error
	if m.config.Metrics, err = metrics.NewAcceptor(m.registry, acceptor.Reasons()); err != nil {
		return err
	}
	l, err := net.Listen("tcp", m.addr)
	if err != nil {
		return err
	}
	m.addr = l.Addr().String()
	if m.node, err = acceptor.New(m.config); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := metrics.NewAcceptorState(m.registry, m.node.State); err != nil {
		return err
	}
	go func() { _ = m.node.Serve(l) }() // until Shutdown
	return nil
}

func (m *memberNode) stop() error {
	if m == nil || m.node == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := m.node.Shutdown(ctx)
	m.node = nil
	return err
}

func (c *cluster) stop() error {
	var all error
	for _, m := range c.members {
		all = errors.Join(all, m.stop())
	}
	return all
}

func (c *cluster) addresses() []string {
	var addrs []string
	for _, m := range c.members {
		addrs = append(addrs, m.addr)
	}
	return addrs
}

// open creates a timeline and opens it for writing.
func (c *cluster) open(ctx context.Context, id wal.TimelineID, config proposer.Config) (*proposer.Proposer, error) {
	a, err := admin.Dial(c.addresses())
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if _, _, err := a.Create(ctx, admin.Creation{Timeline: id}); err != nil {
		return nil, err
	}
	config.Acceptors, config.Timeline = c.addresses(), id
	return proposer.Open(ctx, config)
}

// sum adds up one counter, or a histogram's count or sum, over all members.
func (c *cluster) sum(name string, get func(*sample) float64) float64 {
	var total float64
	for _, m := range c.members {
		families, err := m.registry.Gather()
		if err != nil {
			continue
		}
		for _, f := range families {
			if f.GetName() != name {
				continue
			}
			for _, x := range f.GetMetric() {
				total += get(x)
			}
		}
	}
	return total
}
