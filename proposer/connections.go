package proposer

import (
	"fmt"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// Connections are TCP connections to acceptors, at most two to each: one for
// appends and questions, one for bulk reads, so that acknowledgements do not queue
// behind them. A proposer or reader makes its own unless it is given some;
// a program with many timelines lets them share. Safe for concurrent use.
type Connections struct {
	options []grpc.DialOption

	mu     sync.Mutex
	conns  map[route]*grpc.ClientConn
	closed bool
}

type route struct {
	addr string
	bulk bool
}

// NewConnections makes an empty set. The options come after the library's own:
// transport credentials (plain TCP without), dialers, interceptors.
func NewConnections(options ...grpc.DialOption) *Connections {
	return &Connections{options: options, conns: map[route]*grpc.ClientConn{}}
}

// get returns the connection, which is made when it is used. Names are resolved
// anew each time: an acceptor may come back elsewhere.
func (c *Connections) get(addr string, bulk bool) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if cc := c.conns[route{addr, bulk}]; cc != nil {
		return cc, nil
	}
	options := append(proto.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 3 * time.Second,
		}))
	cc, err := grpc.NewClient("passthrough:///"+addr, append(options, c.options...)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	c.conns[route{addr, bulk}] = cc
	return cc, nil
}

// Close ends them all, under those who still use them. It may be called more than once.
func (c *Connections) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, cc := range c.conns {
		cc.Close() // the second time it says that it is closed
	}
	return nil
}
