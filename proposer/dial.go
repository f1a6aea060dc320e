package proposer

import (
	"time"

	"github.com/seed7f3f3bb8/holdfast/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// dial prepares a connection to one acceptor. It is made when it is used, and
// names are resolved anew each time: an acceptor may come back elsewhere.
func dial(c *Config, addr string) (*grpc.ClientConn, error) {
	options := append(proto.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 3 * time.Second,
		}))
	return grpc.NewClient("passthrough:///"+addr, append(options, c.DialOptions...)...)
}
