//go:build !race

package proposer_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// Nothing of our own is allocated for an append, its request and its
// acknowledgement once everything that is kept has been made. What gRPC and the
// fake acceptors allocate meanwhile is theirs: the profile tells them apart.
func TestAppendAllocatesNothing(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would empty the pools
	for _, c := range []struct{ size, inFlight int }{{128, 1}, {128, 16}, {8 << 10, 1}, {8 << 10, 16}, {16 << 10, 1}} {
		p := open(t, newSink(t, 3).config())
		data := written(c.size, 1)
		const n = 1000
		before := ownAllocations(t)
		appendWait(t, p, data, c.inFlight, n) // makes what is kept
		rate := runtime.MemProfileRate
		runtime.MemProfileRate = 1
		appendWait(t, p, data, c.inFlight, n)
		runtime.MemProfileRate = rate
		own := ownAllocations(t)
		total := 0
		var where []string
		for at, count := range own {
			if count -= before[at]; count > 0 {
				total += int(count)
				where = append(where, fmt.Sprintf("%d at %s", count, at))
			}
		}
		// Pools are not exact, and a stream that falls behind makes more frames wait;
		// one for every stream and append would be 3n.
		if total > n {
			t.Errorf("%+v: %d appends allocated %d times:\n%s", c, n, total, strings.Join(where, "\n"))
		}
		p.Close()
	}
}

// ownAllocations counts the allocations that were made by lines of package proposer.
func ownAllocations(t *testing.T) map[string]int64 {
	runtime.GC() // publishes what was allocated before
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 1<<14)
	n, ok := runtime.MemProfile(records, true)
	if !ok {
		t.Fatalf("%d profile records", n)
	}
	own := map[string]int64{}
	for _, r := range records[:n] {
		frames := runtime.CallersFrames(r.Stack())
		for {
			f, more := frames.Next()
			if !strings.HasPrefix(f.Function, "runtime.") && !strings.HasPrefix(f.Function, "sync.") {
				if strings.HasPrefix(f.Function, "github.com/seed7f3f3bb8/holdfast/proposer.") {
					own[fmt.Sprintf("%s:%d", f.Function, f.Line)] += r.AllocObjects
				}
				break
			}
			if !more {
				break
			}
		}
	}
	return own
}
