package workload

import (
	"context"
	"sync"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// memoryLog is an appender that commits at once, and a cluster of replicas of
// what was appended, which a test may damage.
type memoryLog struct {
	mu       sync.Mutex
	first    wal.LSN
	data     []byte
	failAt   int // the n-th append fails; 0 = none
	appends  int
	failWith error
}

func (m *memoryLog) Append(_ context.Context, data []byte) (wal.LSN, wal.LSN, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.appends++; m.appends == m.failAt {
		return 0, 0, m.failWith
	}
	begin := m.first + wal.LSN(len(m.data))
	m.data = append(m.data, data...)
	return begin, begin + wal.LSN(len(data)), nil
}

func (m *memoryLog) Wait(ctx context.Context, _ wal.LSN) error { return ctx.Err() }

// memoryCluster serves three copies of one log.
type memoryCluster struct {
	first  wal.LSN
	copies map[string][]byte // by address
	away   map[string]bool
}

var memoryMembers = wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1, Addr: "a"}, {ID: 2, Addr: "b"}, {ID: 3, Addr: "c"}}}

func replicate(m *memoryLog) *memoryCluster {
	c := &memoryCluster{first: m.first, copies: map[string][]byte{}, away: map[string]bool{}}
	for _, x := range memoryMembers.Members {
		c.copies[x.Addr] = append([]byte(nil), m.data...)
	}
	return c
}

func (c *memoryCluster) Timelines(context.Context, wal.TimelineID) []admin.Answer[*admin.Timeline] {
	var answers []admin.Answer[*admin.Timeline]
	for _, x := range memoryMembers.Members {
		a := admin.Answer[*admin.Timeline]{Addr: x.Addr, Err: admin.ErrUnreachable}
		if !c.away[x.Addr] {
			end := c.first + wal.LSN(len(c.copies[x.Addr]))
			a.Err, a.Value = nil, &admin.Timeline{
				ID: testTimeline, Node: x.ID, Membership: memoryMembers, First: c.first, Oldest: c.first,
				LastLogTerm: 1, History: wal.History{{Term: 1, LSN: c.first}}, Write: end, Flush: end, Commit: end,
			}
		}
		answers = append(answers, a)
	}
	return answers
}

func (c *memoryCluster) Read(_ context.Context, addr string, o admin.ReadOptions, yield func(wal.Chunk) error) (wal.LSN, error) {
	const odd = 1013 // chunks that fit nothing
	at := o.Begin
	for at < o.End {
		data := c.copies[addr][at-c.first : min(at+odd, o.End)-c.first]
		if err := yield(wal.Chunk{Begin: at, CRC: wal.Checksum(data), Data: data}); err != nil {
			return at, err
		}
		at += wal.LSN(len(data))
	}
	return at, nil
}
