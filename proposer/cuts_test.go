package proposer

import (
	"math/rand/v2"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func TestCutsFindBoundaries(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pool := newChunkPool(1<<20, 1)
	k := pool.get()
	var c cuts
	c.reset(1000)
	bounds := []wal.LSN{1000}
	for range 3 * cutsMax {
		n := 1 + rng.IntN(100)
		c.add(newFrame(consensus.AppendRequest{Begin: c.end}, k, make([]byte, n)))
		bounds = append(bounds, c.end)
		if c.next-c.first > cutsMax || c.bytes > cutsBytesMax {
			t.Fatalf("%d cuts with %d bytes are kept", c.next-c.first, c.bytes)
		}
		kept := bounds[len(bounds)-1-int(c.next-c.first):]
		lsn := bounds[0] + wal.LSN(rng.IntN(int(c.end-bounds[0])))
		want := kept[0] // the first boundary above lsn among those kept
		for _, b := range kept {
			if want = b; b > lsn {
				break
			}
		}
		if got := c.boundary(lsn); got != want {
			t.Fatalf("the boundary above %v is %v, expected %v", lsn, got, want)
		}
		if f := c.get(c.locate(lsn)); f == nil || f.end() <= lsn || f.begin() > lsn && f != c.get(c.first) {
			t.Fatalf("wrong cut for %v", lsn)
		}
	}
	if c.locate(c.end) != c.next || c.get(c.next) != nil || c.get(c.first-1) != nil {
		t.Error("a cut beyond those kept")
	}
	c.reset(5)
	k.release()
	if k.refs.Load() != 0 || c.bytes != 0 || c.end != 5 {
		t.Errorf("%d references, %d bytes after reset", k.refs.Load(), c.bytes)
	}
	if pool.get() != k {
		t.Error("the chunk did not come back")
	}
}

func TestEnds(t *testing.T) {
	var e ends
	rng := rand.New(rand.NewPCG(3, 4))
	var model []wal.LSN
	at := wal.LSN(0)
	for range 10_000 {
		if rng.IntN(3) > 0 {
			at += wal.LSN(1 + rng.IntN(10))
			e.add(at)
			model = append(model, at)
		} else {
			drop := at - wal.LSN(rng.IntN(50))
			e.drop(drop)
			for len(model) > 0 && model[0] <= drop {
				model = model[1:]
			}
		}
		if e.len() != len(model) || e.len() > 0 && e.lsns[e.head] != model[0] {
			t.Fatalf("%d ends, expected %d", e.len(), len(model))
		}
	}
	e = ends{}
	e.add(10)
	e.add(20)
	if n := e.limit(0, 100); n != 10 {
		t.Errorf("up to the first end: %d", n)
	}
	if n := e.limit(10, 5); n != 5 {
		t.Errorf("short of the second end: %d", n)
	}
	if n := e.limit(20, 100); n != 100 {
		t.Errorf("beyond the last end: %d", n)
	}
}
