package check

import (
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestKillEverything: all three acceptors and the proposer are killed at one
// moment, again and again. What was acknowledged before must be there after it.
func TestKillEverything(t *testing.T) {
	rounds := 5
	if long() {
		rounds = 100
	}
	f, c := start(t, "--first-segment-bytes", "2MiB", "--segment-bytes", "4MiB")
	create(t, c, 0)
	ackLog := filepath.Join(t.TempDir(), "acks")
	for round := range rounds {
		before := committed(t.Context(), c)
		size := 1 << rand.IntN(18)
		load := spawn(t, f, "load", "--duration", "1m", "--size", strconv.Itoa(size), "--concurrency", "32", "--ack-log", ackLog)
		eventually(t, "appends are committed", func() bool { return committed(t.Context(), c) > before+wal.LSN(size) })
		time.Sleep(time.Duration(rand.Int64N(int64(500 * time.Millisecond))))
		var wg sync.WaitGroup
		wg.Go(load.kill)
		for _, n := range f.Nodes {
			wg.Go(n.Kill)
		}
		wg.Wait()
		for _, n := range f.Nodes {
			if err := n.Start(t.Context()); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
	must(t, f, "load", "--duration", "100ms", "--settle", testWait.String(), "--ack-log", ackLog)
	r := audited(t, c, ackLog)
	t.Logf("%d acknowledged appends over %d kills, none missing", r.Acked, rounds)
}
