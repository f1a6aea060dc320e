package main

import (
	"context"
	"math"
	"strconv"
	"strings"
)

// perSync is what one fdatasync carried.
type perSync struct {
	WALBytes     float64 `json:"wal_bytes_per_fdatasync"`
	Transactions float64 `json:"transactions_per_fdatasync"`
}

// syncs are counters of one log; nil where nobody counts.
type syncs struct {
	bytes, count float64
}

func (s *syncs) since(before *syncs) *syncs {
	if s == nil || before == nil {
		return nil
	}
	return &syncs{s.bytes - before.bytes, s.count - before.count}
}

func (s *syncs) per(transactions float64) *perSync {
	if s == nil || s.count <= 0 {
		return nil
	}
	return &perSync{WALBytes: math.Round(s.bytes / s.count), Transactions: math.Round(100*transactions/s.count) / 100}
}

// primarySyncs asks pg_stat_wal, which counts from version 14 on and no longer
// has this column from 18 on.
func (w *world) primarySyncs(ctx context.Context) *syncs {
	rows, err := w.primary.Query(ctx, "SELECT wal_bytes, wal_sync FROM pg_stat_wal")
	if err != nil || len(rows) != 1 {
		return nil
	}
	b, err1 := strconv.ParseFloat(rows[0][0], 64)
	n, err2 := strconv.ParseFloat(rows[0][1], 64)
	if err1 != nil || err2 != nil {
		return nil
	}
	return &syncs{b, n}
}

// acceptorSyncs is the mean of the acceptors: each has the whole log.
func (w *world) acceptorSyncs(ctx context.Context) *syncs {
	if w.fleet == nil {
		return nil
	}
	sum := &syncs{}
	for _, n := range w.fleet.Nodes {
		m, err := n.Metrics(ctx)
		if err != nil {
			return nil
		}
		for name, v := range m {
			switch {
			case strings.HasSuffix(name, "_batch_bytes_sum"):
				sum.bytes += v / float64(len(w.fleet.Nodes))
			case strings.HasSuffix(name, "_batch_bytes_count"):
				sum.count += v / float64(len(w.fleet.Nodes))
			}
		}
	}
	return sum
}
