package workload

import (
	"fmt"
	"time"
)

// Rate is what a load did in one interval.
type Rate struct {
	AppendsPerSecond float64
	BytesPerSecond   float64
	P50, P99         time.Duration
}

// Rates turns a meter into rates: each call covers the time since the one
// before. It is for one goroutine.
type Rates struct {
	meter *Meter
	seen  *Snapshot
	bytes uint64
	at    time.Time
}

// NewRates begins the first interval now.
func NewRates(m *Meter) *Rates {
	return &Rates{meter: m, seen: m.Latencies.Snapshot(), bytes: m.Bytes(), at: time.Now()}
}

// Next ends an interval and begins another.
func (r *Rates) Next() Rate {
	now, seen, bytes := time.Now(), r.meter.Latencies.Snapshot(), r.meter.Bytes()
	in, seconds := seen.Since(r.seen), now.Sub(r.at).Seconds()
	rate := Rate{P50: in.Quantile(.5), P99: in.Quantile(.99)}
	if seconds > 0 {
		rate.AppendsPerSecond = float64(in.Count) / seconds
		rate.BytesPerSecond = float64(bytes-r.bytes) / seconds
	}
	r.seen, r.bytes, r.at = seen, bytes, now
	return rate
}

func (r Rate) String() string {
	return fmt.Sprintf("%.0f appends/s  %.1f MB/s  ack p50 %v p99 %v", r.AppendsPerSecond, r.BytesPerSecond/1e6,
		r.P50.Round(10*time.Microsecond), r.P99.Round(10*time.Microsecond))
}
