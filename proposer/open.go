package proposer

import (
	"context"
	"crypto/rand"
	"fmt"
	randv2 "math/rand/v2"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Open becomes the writer of the timeline: it finds the members, wins an
// election, brings a majority's logs to its own, and returns when the start of
// its term is committed. ctx bounds all this, and nothing afterwards. Whoever
// wrote before is fenced from the moment the election is won.
//
// If ctx ends first the error tells what each member said. ErrNotFound comes
// back as soon as every acceptor that was named has answered that it has no such
// timeline, a *RefusedError when no majority can take part any more.
func Open(ctx context.Context, c Config) (*Proposer, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	connections, own := c.Connections, c.Connections == nil
	if own {
		connections = NewConnections(c.DialOptions...)
	}
	found, err := discover(ctx, &question{c.Acceptors, c.Timeline, connections})
	if err != nil {
		if own {
			connections.Close()
		}
		return nil, err
	}
	p := start(c, found, connections)
	select {
	case <-p.ready:
		return p, nil
	case <-p.done:
		err = p.Err()
	case <-ctx.Done():
		err = fmt.Errorf("%w while %v in term %d: %s", ctx.Err(), p.Status().Phase, p.Status().Term, p.complaints())
	}
	p.Close()
	return nil, err
}

// start makes a proposer for what was discovered and sets it going.
func start(c Config, found discovery, connections *Connections) *Proposer {
	life, end := context.WithCancel(context.Background())
	p := &Proposer{
		config: c, creation: found.creation, membership: found.membership, logger: c.Logger, connections: connections,
		life: life, end: end, ready: make(chan struct{}), done: make(chan struct{}),
		pacer: &pacer{bytesPerSecond: c.RefillBytesPerSecond},
		turn:  make(chan struct{}, 1), room: make(chan struct{}, 1), clockKick: make(chan struct{}, 1),
		window: newWindow(c.WindowBytes),
		meter:  meter{to: c.Metrics},
	}
	var id wal.ProposerID
	rand.Read(id[:])
	p.core = consensus.NewProposer(consensus.ProposerConfig{
		ID: id, Timeline: c.Timeline, Creation: found.creation, Membership: found.membership, SystemID: c.SystemID,
		Decide: c.Decide != nil || c.SystemID != 0 || c.Properties != nil,
		Jitter: func(n int) int { return randv2.IntN(max(n, 1)) },
	})
	p.announce = time.AfterFunc(time.Hour, p.announceCommit)
	p.announce.Stop()
	for _, peer := range p.core.Peers() {
		p.members = append(p.members, &member{p: p, node: peer.Node, addr: found.addrs[peer.Node]})
	}
	var streams sync.WaitGroup
	for _, m := range p.members {
		streams.Go(m.run)
	}
	p.tasks.Go(func() {
		streams.Wait()
		if c.Connections == nil {
			connections.Close()
		}
	})
	p.tasks.Go(p.clock)
	return p
}

// complaints says what keeps the members from taking part.
func (p *Proposer) complaints() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []MemberError
	for _, m := range p.members {
		if m.err != nil {
			list = append(list, MemberError{m.node, m.addr, m.err})
		}
	}
	if len(list) == 0 {
		return "no member has reported a fault"
	}
	return joinMembers(list)
}
