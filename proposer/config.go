package proposer

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Election is what a won vote found; see Config.Decide.
type Election = consensus.Election

// Decision says how to go on from an Election.
type Decision = consensus.Decision

// Config says which log to write and how. Acceptors and Timeline are required.
type Config struct {
	// Acceptors say where to ask, HOST:PORT each. Who the members are and where
	// they listen is part of the timeline: members that are not named here are
	// found, and two addresses of one node count once.
	Acceptors []string
	Timeline  wal.TimelineID

	// SystemID identifies the database whose log this is; an acceptor that has
	// another one stored refuses. 0 takes what is stored.
	SystemID uint64

	// Properties, at most wal.PropertiesBytesMax, are stored with the election.
	// nil keeps what is stored.
	Properties []byte

	// Decide, if set, is asked after each won vote until Open returns: where to
	// begin, under which system identifier, with which properties. An error stops
	// the proposer. It runs on a goroutine of its own, never twice at once, and
	// ctx ends when its answer is no longer wanted. Without it the log is
	// continued where it ends.
	Decide func(ctx context.Context, e Election) (Decision, error)

	// WindowBytes bounds the log bytes held in memory, and thereby what is
	// unacknowledged on a stream; 0 = 64 MiB, at least 64 KiB. When it is full of
	// bytes that are not committed, Append waits.
	WindowBytes int

	// RequestBytesMax bounds what is coalesced into one request; 0 = 256 KiB, at
	// most wal.RequestBytesMax. An acceptor may ask for less.
	RequestBytesMax int

	// RefillBytesPerSecond bounds how fast acceptors that fell out of the window
	// are filled from another one's disk, all together; 0 = 64 MiB, negative = as
	// fast as it goes. It must be above the rate of appends for them to catch up.
	// Until Open returns there is no bound.
	RefillBytesPerSecond int

	// NoCoalesce sends every Append as a request of its own, for comparison.
	NoCoalesce bool

	// DialOptions are for connections of its own; see NewConnections.
	DialOptions []grpc.DialOption
	// Connections, if set, are used instead, and stay open.
	Connections *Connections

	Logger  *zap.Logger       // nil logs nothing
	Metrics *metrics.Proposer // nil counts nothing; proposers may share one
}

const (
	windowBytesDefault  = 64 << 20
	windowBytesMin      = 64 << 10
	requestBytesDefault = 256 << 10
	refillBytesDefault  = 64 << 20
)

// complete checks c and returns it with its defaults filled in.
func (c Config) complete() (Config, error) {
	if len(c.Acceptors) == 0 {
		return c, errors.New("config: no acceptors were named")
	}
	if err := c.Timeline.Validate(); err != nil {
		return c, fmt.Errorf("config: %w", err)
	}
	if len(c.Properties) > wal.PropertiesBytesMax {
		return c, fmt.Errorf("config: %d bytes of properties, at most %d are allowed", len(c.Properties), wal.PropertiesBytesMax)
	}
	if c.WindowBytes == 0 {
		c.WindowBytes = windowBytesDefault
	}
	if c.WindowBytes < windowBytesMin {
		return c, fmt.Errorf("config: a window of %d bytes, at least %d are needed", c.WindowBytes, windowBytesMin)
	}
	if c.RequestBytesMax == 0 {
		c.RequestBytesMax = requestBytesDefault
	}
	if c.RequestBytesMax < 1 || c.RequestBytesMax > wal.RequestBytesMax {
		return c, fmt.Errorf("config: requests of at most %d bytes; expected 1 to %d", c.RequestBytesMax, wal.RequestBytesMax)
	}
	if c.RefillBytesPerSecond == 0 {
		c.RefillBytesPerSecond = refillBytesDefault
	}
	if c.Connections != nil && len(c.DialOptions) > 0 {
		return c, errors.New("config: dial options are for connections of its own, and it was given some to share")
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c, nil
}
