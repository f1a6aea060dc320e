package main

import (
	"context"
	"sync/atomic"

	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// inTurn spreads appends over proposers, one after the other.
type inTurn struct {
	writers []*proposer.Proposer
	next    atomic.Uint64
}

// Append implements workload.Appender. It waits for the append itself: a position
// does not say whose it is.
func (x *inTurn) Append(ctx context.Context, data []byte) (begin, end wal.LSN, err error) {
	p := x.writers[x.next.Add(1)%uint64(len(x.writers))]
	if begin, end, err = p.Append(ctx, data); err == nil {
		err = p.Wait(ctx, end)
	}
	return begin, end, err
}

// Wait implements workload.Appender.
func (x *inTurn) Wait(context.Context, wal.LSN) error { return nil }
