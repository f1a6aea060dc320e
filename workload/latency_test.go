package workload

import (
	"math"
	"testing"
	"time"
)

func TestLatencyBucketsAreTight(t *testing.T) {
	for n := uint64(1); n < 1<<62; n += 1 + n/7 {
		b := latencyBucket(n)
		upper := uint64(latencyUpper(b))
		if upper < n || float64(upper-n) > 0.016*float64(n) || latencyBucket(upper) != b || latencyBucket(upper+1) != b+1 {
			t.Fatalf("%d falls into bucket %d, whose largest is %d", n, b, upper)
		}
	}
	if b := latencyBucket(math.MaxInt64); b >= latencyBuckets {
		t.Fatalf("bucket %d of %d", b, latencyBuckets)
	}
}

func TestLatencyQuantiles(t *testing.T) {
	var l Latencies
	for i := 1; i <= 1000; i++ {
		l.Add(time.Duration(i) * time.Millisecond)
	}
	early := l.Snapshot()
	for q, want := range map[float64]time.Duration{.5: 500 * time.Millisecond, .99: 990 * time.Millisecond, 1: time.Second} {
		if got := early.Quantile(q); got < want || float64(got-want) > 0.02*float64(want) {
			t.Errorf("quantile %v = %v, want %v", q, got, want)
		}
	}
	l.Add(3 * time.Second)
	if d := l.Snapshot().Since(early); d.Count != 1 || d.Quantile(.5) != 3*time.Second {
		t.Errorf("since: %d, %v", d.Count, d.Quantile(.5))
	}
	if got := new(Snapshot).Quantile(.5); got != 0 {
		t.Errorf("quantile of nothing = %v", got)
	}
}
