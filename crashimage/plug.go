package crashimage

import (
	"math/rand/v2"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/blockdev"
)

// cutPoints draws n moments of a history, in order. A quarter of them are
// anywhere, a quarter are right behind a promise, and half are moments at which
// something was written and not flushed.
func cutPoints(rng *rand.Rand, h *blockdev.History, n int) []int {
	var promised, pending []int
	dirty := false
	for i, e := range h.Events {
		switch e.Kind {
		case blockdev.Note:
			promised = append(promised, i+1)
		case blockdev.Write:
			dirty = true
		case blockdev.Flush:
			dirty = false
		}
		if dirty {
			pending = append(pending, i+1)
		}
	}
	points := make([]int, n)
	for i := range points {
		switch {
		case i%2 == 0 && len(pending) > 0:
			points[i] = pending[rng.IntN(len(pending))]
		case i%4 == 1 && len(promised) > 0:
			points[i] = promised[rng.IntN(len(promised))]
		default:
			points[i] = rng.IntN(len(h.Events) + 1)
		}
	}
	slices.Sort(points)
	return points
}

// Pull is a way in which the power fails: how the writes fare that were not flushed.
type Pull int

// The ways.
const (
	AllDropped Pull = iota
	AllKept
	AllTorn
	Thirds      // each dropped, kept or torn
	MostKept    // one in ten dropped or torn
	MostDropped // one in ten kept or torn
	Prefix      // kept up to one, which is torn; nothing behind it
	Suffix      // dropped up to one, which is torn; everything behind it
	pulls
)

var pullNames = [pulls]string{"all dropped", "all kept", "all torn", "thirds", "most kept", "most dropped", "prefix", "suffix"}

func (p Pull) String() string { return pullNames[p] }

// fates returns what becomes of each of pending writes.
func (p Pull) fates(rng *rand.Rand, pending int) func(int) blockdev.Fate {
	const dropped, kept, torn = blockdev.Dropped, blockdev.Kept, blockdev.Torn
	at := rng.IntN(pending + 1)
	mostly := func(usual, other blockdev.Fate) blockdev.Fate {
		switch rng.IntN(20) {
		case 0:
			return other
		case 1:
			return torn
		}
		return usual
	}
	return func(i int) blockdev.Fate {
		switch p {
		case AllKept:
			return kept
		case AllTorn:
			return torn
		case Thirds:
			return [...]blockdev.Fate{dropped, kept, torn}[rng.IntN(3)]
		case MostKept:
			return mostly(kept, dropped)
		case MostDropped:
			return mostly(dropped, kept)
		case Prefix, Suffix:
			switch {
			case i == at:
				return torn
			case i < at == (p == Prefix):
				return kept
			}
		}
		return dropped
	}
}
