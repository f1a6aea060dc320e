package workload

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Latencies is a histogram of durations with a fixed size and a relative error
// below 1 %. It is safe for concurrent use.
//
// A duration of n nanoseconds falls into the bucket of its highest bit and of
// the 6 bits behind it: 64 buckets to a power of two.
type Latencies struct {
	buckets [latencyBuckets]atomic.Uint64
	max     atomic.Int64
}

const (
	latencySubBits = 6
	latencyBuckets = (64 - latencySubBits) << latencySubBits
)

func latencyBucket(n uint64) int {
	if n < 1<<latencySubBits {
		return int(n)
	}
	shift := bits.Len64(n) - latencySubBits - 1
	return (shift+1)<<latencySubBits + int(n>>shift) - 1<<latencySubBits
}

// latencyUpper is the largest duration that falls into a bucket.
func latencyUpper(bucket int) time.Duration {
	if bucket < 1<<latencySubBits {
		return time.Duration(bucket)
	}
	shift := bucket>>latencySubBits - 1
	low := uint64(bucket&(1<<latencySubBits-1)|1<<latencySubBits) << shift
	return time.Duration(low + 1<<shift - 1)
}

// Add counts one duration.
func (l *Latencies) Add(d time.Duration) {
	l.buckets[latencyBucket(uint64(max(d, 0)))].Add(1)
	for {
		old := l.max.Load()
		if int64(d) <= old || l.max.CompareAndSwap(old, int64(d)) {
			return
		}
	}
}

// Snapshot is the content of a histogram at one moment.
type Snapshot struct {
	counts [latencyBuckets]uint64
	Count  uint64
	Max    time.Duration // since the histogram began
}

// Snapshot copies the histogram.
func (l *Latencies) Snapshot() *Snapshot {
	s := &Snapshot{Max: time.Duration(l.max.Load())}
	for i := range l.buckets {
		s.counts[i] = l.buckets[i].Load()
		s.Count += s.counts[i]
	}
	return s
}

// Since is what was added after an earlier snapshot of the same histogram.
func (s *Snapshot) Since(earlier *Snapshot) *Snapshot {
	d := &Snapshot{Max: s.Max}
	for i := range s.counts {
		d.counts[i] = s.counts[i] - earlier.counts[i]
		d.Count += d.counts[i]
	}
	return d
}

// Quantile is the duration that the fraction q of all stay at or below, 0 if there are none.
func (s *Snapshot) Quantile(q float64) time.Duration {
	rank, seen := uint64(q*float64(s.Count)), uint64(0)
	for i, n := range s.counts {
		if seen += n; n > 0 && seen > rank {
			return min(latencyUpper(i), s.Max)
		}
	}
	if s.Count == 0 {
		return 0
	}
	return s.Max
}
