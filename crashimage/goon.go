package crashimage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// proposerAfter is who wins the next term on an image.
var proposerAfter = wal.ProposerID{15: 2}

// goOn runs a node of the production code on an image: a new proposer must win
// it, append to it and have it acknowledged, and everything must be there afterwards.
func goOn(ctx context.Context, dataDir string, book *Book, p Promise, r *recovered) error {
	m, err := metrics.NewAcceptor(prometheus.NewRegistry(), acceptor.Reasons())
	if err != nil {
		return err
	}
	node, err := acceptor.New(acceptor.Config{NodeID: 1, DataDir: dataDir, Metrics: m, SpareSegments: -1, SegmentBytes: 1 << 20})
	if err != nil {
		return fmt.Errorf("a node does not start on it: %w", err)
	}
	l := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- node.Serve(l) }()
	more := *book.clone()
	promised := p
	err = appendMore(ctx, l, &more, &promised, r)
	stop, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err = errors.Join(err, node.Shutdown(stop), <-served); err != nil {
		return fmt.Errorf("it does not go on: %w", err)
	}
	if _, err := audit(dataDir, &more, promised); err != nil {
		return fmt.Errorf("after going on: %w", err)
	}
	return nil
}

func appendMore(ctx context.Context, l *bufconn.Listener, book *Book, p *Promise, r *recovered) error {
	c, err := dial("passthrough:image", book, func(note any) { p.add(note) },
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		return err
	}
	defer c.conn.Close()
	s, g, err := c.open(ctx, proposerAfter)
	if err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	defer s.close()
	if g.Term != r.state.Term || g.Flush != r.flush {
		return fmt.Errorf("it greets with term %d and flush %v; recovered were %d and %v", g.Term, g.Flush, r.state.Term, r.flush)
	}
	v, err := s.vote(g.Term + 1)
	if err != nil || !v.Granted {
		return fmt.Errorf("no vote in term %d: %+v, %w", g.Term+1, v, err)
	}
	if err := s.elect(v, g.Term+1, v.Flush); err != nil {
		return err
	}
	at := v.Flush
	for range 3 {
		at = s.append(at, 10_000, v.Commit, 0)
	}
	return s.acked(at, 0)
}

// clone is a book that can be written on without the other one knowing.
func (b *Book) clone() *Book {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &Book{Seed: b.Seed, Timeline: b.Timeline, Creation: b.Creation, First: b.First, campaigns: map[wal.Term]wal.ProposerID{}, elections: map[wal.Term]*election{}}
	for term, who := range b.campaigns {
		c.campaigns[term] = who
	}
	for term, e := range b.elections {
		same := *e
		c.elections[term] = &same
	}
	return c
}
