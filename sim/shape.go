package sim

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// shape is what a world is made of. It is drawn from the seed.
type shape struct {
	nodes        int // 3, sometimes 5
	slots        int // proposers at a time, 1 to 3
	first        wal.LSN
	segmentBytes int64
	windowBytes  wal.LSN // in flight to one acceptor
	rude         bool    // the network loses, repeats and reorders single messages within a connection
	latency      int64   // usual delay of a message
	sync         int64   // usual time of a turn that writes
	quietEvery   int64   // how often an acceptor saves commit and horizon when idle
	steps        int     // of the script
	length       int64   // of the script, in virtual time
}

func shapeOf(seed uint64, small bool) shape {
	r := chance(seed, chanceShape, 0, 0, 0)
	s := shape{
		nodes: 3, slots: 1 + r.IntN(3), first: wal.LSN(r.Uint64N(3) * 0x1000),
		segmentBytes: []int64{16 << 10, 16 << 10, 32 << 10, 64 << 10}[r.IntN(4)],
		windowBytes:  wal.LSN(between(r, 1<<10, 32<<10)),
		rude:         oneIn(r, 4),
		latency:      []int64{200, millisecond, 5 * millisecond}[r.IntN(3)],
		sync:         []int64{100, millisecond, 10 * millisecond}[r.IntN(3)],
		quietEvery:   between(r, 500*millisecond, 4*second),
		steps:        240 + r.IntN(160),
		length:       between(r, 10*second, 30*second),
	}
	if oneIn(r, 4) {
		s.nodes = 5
	}
	if small {
		s.steps /= 4
	}
	return s
}

func (s shape) String() string {
	manners := ""
	if s.rude {
		manners = ", messages lost, repeated and reordered"
	}
	return fmt.Sprintf("%d acceptors, %d proposers, segments of %d KiB, %d steps in %d s%s", s.nodes, s.slots, s.segmentBytes>>10, s.steps, s.length/second, manners)
}

// faulty is how many copies may be damaged: a good quorum always remains.
func (s shape) faulty() int { return (s.nodes - 1) / 2 }

func (s shape) membership() wal.Membership {
	m := wal.Membership{Generation: 1}
	for i := range s.nodes {
		m.Members = append(m.Members, wal.Member{ID: wal.NodeID(i + 1), Addr: fmt.Sprintf("node-%d:7001", i+1)})
	}
	return m
}

var timeline = wal.TimelineID{Tenant: "sim", Timeline: "world"}

func creation() wal.CreationID { return wal.CreationID{0x51, 0x11} }

// Limits of the simulated acceptors. Segments are small, so that every run
// seals, recycles and trims some.
const (
	requestBytesMax = 2 << 10
	stateBytesMax   = 2 << 10
	reserveBytes    = 6 << 10
	inboxBytes      = 1 << 20
)
