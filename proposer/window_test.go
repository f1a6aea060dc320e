package proposer

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// The window against a plain slice: whatever is placed, given up and reclaimed,
// it holds what it says and never more than its size.
func TestWindowAgainstASlice(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWindow(4096)
		start := wal.LSN(rng.IntN(10_000))
		w.reset(start)
		var all []byte // from start on
		committed := start
		for range 300 {
			switch rng.IntN(10) {
			case 0:
				committed += wal.LSN(rng.IntN(int(w.tail-committed) + 1))
			case 1:
				w.dropTo(min(committed, w.begin+wal.LSN(rng.IntN(2000))))
			case 2:
				if committed == w.tail {
					w.dropTo(w.tail)
					w.dropLast()
				}
			default:
				n := rng.IntN(1500)
				if w.room() < n && !w.reclaim(n, committed) {
					if w.tail-committed == 0 && n <= w.capacity() {
						t.Fatalf("seed %d: no room for %d though all is committed", seed, n)
					}
					continue
				}
				if w.room() < n {
					t.Fatalf("seed %d: reclaim promised room for %d, there is %d", seed, n, w.room())
				}
				data := make([]byte, n)
				for i := range data {
					data[i] = byte(rng.Uint32())
				}
				w.place(data)
				all = append(all, data...)
			}
			if w.tail != start+wal.LSN(len(all)) || w.begin > committed && w.begin != w.tail || len(w.chunks) > w.chunksMax {
				t.Fatalf("seed %d: window [%v, %v) of %d chunks, commit %v, %d bytes placed", seed, w.begin, w.tail, len(w.chunks), committed, len(all))
			}
			for at := w.begin; at < w.tail; {
				c, data := w.at(at)
				if len(data) == 0 || !bytes.Equal(data, all[at-start:][:len(data)]) || c.refs.Load() < 1 {
					t.Fatalf("seed %d: wrong bytes at %v", seed, at)
				}
				at += wal.LSN(len(data))
			}
		}
		w.reset(5)
		if w.begin != 5 || w.tail != 5 || len(w.chunks) != 0 {
			t.Fatalf("seed %d: after reset [%v, %v) with %d chunks", seed, w.begin, w.tail, len(w.chunks))
		}
	}
}
