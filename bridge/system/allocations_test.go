//go:build !race

package system

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/metrics"
)

// messages counts what the bridge receives and acknowledges.
type messages struct{ received, stages atomic.Int64 }

func (m *messages) Received(int)                { m.received.Add(1) }
func (m *messages) Stage(string, time.Duration) { m.stages.Add(1) }
func (m *messages) Reconnected(string)          {}

// TestIngestAllocatesNothing runs a real stream, from PostgreSQL's socket
// through the bridge into the proposer of three real acceptors, and counts every
// allocation below the goroutines that handle each message: the one that reads
// and appends, and the one that acknowledges. It is not parallel: the profile is
// the process's.
func TestIngestAllocatesNothing(t *testing.T) {
	w := newWorld(t, pgcluster.InitOptions{})
	w.sql(w.primary, loadTable)
	w.bridge.kill()
	writes, err := metrics.NewProposer(prometheus.NewRegistry(), acceptor.Reasons())
	w.check(err)
	q, err := quorum.New(quorum.Config{Acceptors: w.addrs, Timeline: timeline, Metrics: writes})
	w.check(err)
	defer q.Close()
	var seen messages
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- ingest.New(ingest.Config{Postgres: pgclient.Config{DSN: w.primary.DSN()}, Log: q, Observer: &seen}).Run(ctx)
	}()
	defer func() {
		stop()
		w.check(<-ended)
	}()

	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would empty the pools
	l := w.load(w.primary, 4)
	l.more(1000) // makes what is kept
	before := allocationsBelow(t)
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	received := seen.received.Load()
	l.more(1500)
	received = seen.received.Load() - received
	runtime.MemProfileRate = rate
	l.end()
	total := int64(0)
	var where []string
	for at, n := range allocationsBelow(t) {
		if n -= before[at]; n > 0 {
			total += n
			where = append(where, fmt.Sprintf("%d at %s", n, at))
		}
	}
	t.Logf("%d messages, %d allocations", received, total)
	// Ticks and a pool that was short now and then are not per message.
	if received < 500 || total > received/10 {
		t.Errorf("%d messages allocated %d times, expected none for each:\n%s", received, total, strings.Join(where, "\n"))
	}
}

// allocationsBelow counts what was allocated, by whomever, on behalf of a message.
func allocationsBelow(t *testing.T) map[string]int64 {
	runtime.GC() // publishes what was allocated before
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 1<<15)
	n, ok := runtime.MemProfile(records, true)
	if !ok {
		t.Fatalf("%d profile records", n)
	}
	const room = "github.com/seed7f3f3bb8/holdfast/bridge/ingest."
	out := map[string]int64{}
	for _, r := range records[:n] {
		frames := runtime.CallersFrames(r.Stack())
		at := ""
		for {
			f, more := frames.Next()
			if at == "" && !strings.HasPrefix(f.Function, "runtime.") {
				at = fmt.Sprintf("%s:%d", f.Function, f.Line)
			}
			switch f.Function {
			case room + "(*session).stream", room + "(*session).watchCommit", room + "(*feedback).run":
				out[at] += r.AllocObjects
				more = false
			}
			if !more {
				break
			}
		}
	}
	return out
}
