package proposer

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

func never(wal.LSN) bool { return false }

func TestWaitersAreWokenInOrderAndOnlyOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		var q waiters
		var in []*waiter
		for range 200 {
			w := &waiter{lsn: wal.LSN(rng.IntN(1000)), ready: make(chan struct{}, 1)}
			if !q.add(w, never) {
				t.Fatal("not added")
			}
			in = append(in, w)
		}
		for range 50 {
			i := rng.IntN(len(in))
			if !q.remove(in[i]) || q.remove(in[i]) {
				t.Fatal("removed not once")
			}
			in = slices.Delete(in, i, i+1)
		}
		var woken []wal.LSN
		for lsn := wal.LSN(0); lsn < 1000; lsn += wal.LSN(1 + rng.IntN(200)) {
			for len(q.heap) > 0 && q.heap[0].lsn <= lsn {
				woken = append(woken, q.take(0).lsn)
			}
			for _, w := range q.heap {
				if w.lsn <= lsn {
					t.Fatalf("%v still waits at %v", w.lsn, lsn)
				}
			}
		}
		if !slices.IsSorted(woken) {
			t.Fatal("not in order")
		}
		q.stop()
		if len(q.heap) != 0 || q.add(in[0], never) {
			t.Fatal("someone waits after the stop")
		}
	}
}

// Whoever waits for a position that is reached, before or after, comes back.
func TestNoWakeUpIsMissed(t *testing.T) {
	p := &Proposer{}
	var wg sync.WaitGroup
	const goroutines, rounds = 8, 2000
	for range goroutines {
		wg.Go(func() {
			for i := range rounds {
				if err := p.Wait(t.Context(), wal.LSN(i+1)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var scratch []*waiter
	for i := range rounds {
		p.commit.Store(uint64(i + 1))
		scratch = p.waiters.wake(p.Commit(), scratch)
	}
	wg.Wait()
	if len(p.waiters.heap) != 0 {
		t.Error("someone still waits")
	}
}
