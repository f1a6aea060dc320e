package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Appender is what load needs of a proposer.
type Appender interface {
	// Append gives data its place in the log. It keeps no reference to data.
	Append(ctx context.Context, data []byte) (begin, end wal.LSN, err error)
	// Wait returns once everything below lsn is committed.
	Wait(ctx context.Context, lsn wal.LSN) error
}

// Load is a closed loop: each of Concurrency clients has one append of Size
// bytes in flight and begins the next when that one is committed.
type Load struct {
	Size        int
	Concurrency int
	Duration    time.Duration
	Warm        time.Duration // driven and recorded like the rest, not measured
	Payloads    *Payloads

	// Acks records what was acknowledged. Without it each client sends one
	// payload again and again: making them would be measured too.
	Acks *AckLog

	// Began and Ended, if set, are called when the measured time begins and
	// ends, once each and in this order.
	Began, Ended func()
}

// Meter counts what a load has done so far. It may be read while it runs.
type Meter struct {
	Latencies Latencies // of acknowledged appends, from before Append to after Wait
	bytes     atomic.Uint64
	failed    atomic.Uint64
	began     atomic.Int64 // nanoseconds since the epoch of the measured part
}

// Acked is the number of acknowledged appends so far, warm-up excluded.
func (m *Meter) Acked() uint64 { return m.Latencies.Snapshot().Count }

// Bytes is the payload of the acknowledged appends so far.
func (m *Meter) Bytes() uint64 { return m.bytes.Load() }

// LoadResult is what a load came to. Its JSON names are those of the peers
// harness, so that one table shows all.
type LoadResult struct {
	System   string  `json:"system"`
	Payload  int     `json:"P"`
	Clients  int     `json:"C"`
	Ops      uint64  `json:"ops"`
	Seconds  float64 `json:"secs"`
	OpsS     float64 `json:"ops_s"`
	MBS      float64 `json:"mb_s"` // payload once, 10^6
	P50MS    float64 `json:"p50_ms"`
	P99MS    float64 `json:"p99_ms"`
	P999MS   float64 `json:"p999_ms"`
	MaxMS    float64 `json:"max_ms"`
	Failures uint64  `json:"errors"`
}

// lastAcksWait is how long the last appends may take behind the end.
const lastAcksWait = 10 * time.Second

// Drive runs the loop and fills m. It ends after the duration, when ctx ends,
// or at the first error that ctx is not the reason of; what was acknowledged
// until then is in the result either way.
func (l *Load) Drive(ctx context.Context, to Appender, m *Meter) (LoadResult, error) {
	if l.Size < 1 || l.Concurrency < 1 {
		return LoadResult{}, fmt.Errorf("a load needs at least one byte and one client, not %d and %d", l.Size, l.Concurrency)
	}
	start := time.Now().Add(l.Warm)
	end := start.Add(l.Duration)
	m.began.Store(start.UnixNano())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stuck := time.AfterFunc(time.Until(end)+lastAcksWait, func() {
		cancel(fmt.Errorf("appends were still not acknowledged %v after the end of the load", lastAcksWait))
	})
	defer stuck.Stop()
	var counter atomic.Uint64
	over := l.watch(ctx, start, end)
	var wg sync.WaitGroup
	for range l.Concurrency {
		wg.Go(func() {
			payload := make([]byte, l.Size)
			if l.Acks == nil {
				l.Payloads.Fill(counter.Add(1), payload)
			}
			for time.Now().Before(end) {
				if err := l.one(ctx, to, m, &counter, payload, start, end); err != nil {
					m.failed.Add(1)
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	over()
	seconds := min(time.Since(start), l.Duration).Seconds()
	result := m.result(l, seconds)
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return result, err
	}
	return result, nil
}

// watch calls Began and Ended in time. The result ends it, early if need be.
func (l *Load) watch(ctx context.Context, start, end time.Time) (over func()) {
	if l.Began == nil || l.Ended == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, step := range []struct {
			at time.Time
			do func()
		}{{start, l.Began}, {end, l.Ended}} {
			select {
			case <-time.After(time.Until(step.at)):
			case <-ctx.Done():
			}
			step.do()
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func (l *Load) one(ctx context.Context, to Appender, m *Meter, counter *atomic.Uint64, payload []byte, start, end time.Time) error {
	var number uint64
	if l.Acks != nil {
		number = counter.Add(1)
		l.Payloads.Fill(number, payload)
	}
	before := time.Now()
	from, until, err := to.Append(ctx, payload)
	if err != nil {
		return err
	}
	if err := to.Wait(ctx, until); err != nil {
		return err
	}
	after := time.Now()
	if until-from != wal.LSN(len(payload)) {
		return fmt.Errorf("an append of %d bytes was placed at [%v, %v)", len(payload), from, until)
	}
	if after.After(start) && after.Before(end) {
		m.Latencies.Add(after.Sub(before))
		m.bytes.Add(uint64(len(payload)))
	}
	if l.Acks != nil {
		return l.Acks.Generated(number, from, until, wal.Checksum(payload))
	}
	return nil
}

func (m *Meter) result(l *Load, seconds float64) LoadResult {
	s := m.Latencies.Snapshot()
	ms := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
	r := LoadResult{
		System: "holdfast", Payload: l.Size, Clients: l.Concurrency, Ops: s.Count, Seconds: seconds,
		P50MS: ms(s.Quantile(.5)), P99MS: ms(s.Quantile(.99)), P999MS: ms(s.Quantile(.999)), MaxMS: ms(s.Max),
		Failures: m.failed.Load(),
	}
	if seconds > 0 {
		r.OpsS = float64(r.Ops) / seconds
		r.MBS = float64(m.bytes.Load()) / 1e6 / seconds
	}
	return r
}
