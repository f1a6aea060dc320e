package sim

import (
	"context"
	"sync"
)

// Summary is what came of many seeds.
type Summary struct {
	Seeds     int      `json:"seeds"`
	Events    int64    `json:"events"`
	Elections int64    `json:"elections"`
	Crashes   int64    `json:"crashes"`
	Committed int64    `json:"committed_bytes"`
	Twice     int      `json:"seeds_run_twice"` // with equal traces
	Failures  int      `json:"failures"`
	Failed    []Result `json:"failed,omitempty"` // the first few, shortened
}

// failedMax bounds how many failures are shortened and kept.
const failedMax = 8

// twiceEvery is how often a seed is run a second time to see that it is the same run.
const twiceEvery = 100

// Lot says which seeds to run, and how.
type Lot struct {
	First   uint64
	Seeds   int
	Workers int
	Tries   int          // runs to spend on shortening a failure; 0 leaves it as it is
	Done    func(Result) // if set, is told of every result, one at a time
}

// Run runs the lot, until ctx ends.
func (l Lot) Run(ctx context.Context) Summary {
	var sum Summary
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := l.First
	for range l.Workers {
		wg.Go(func() {
			for {
				mu.Lock()
				if next == l.First+uint64(l.Seeds) || ctx.Err() != nil {
					mu.Unlock()
					return
				}
				seed := next
				next++
				mu.Unlock()

				r := Run(seed, false, nil)
				twice := seed%twiceEvery == 0
				if twice && r.Failure == nil && Run(seed, false, nil).Digest != r.Digest {
					r.Failure = &Failure{"Replay", "two runs of this seed differ", 0}
				}
				mu.Lock()
				sum.add(r, twice)
				keep := r.Failure != nil && len(sum.Failed) < failedMax
				mu.Unlock()
				if keep && l.Tries > 0 {
					r = Shorten(seed, false, l.Tries)
				}
				mu.Lock()
				if keep {
					sum.Failed = append(sum.Failed, r)
				}
				if l.Done != nil {
					l.Done(r)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return sum
}

func (s *Summary) add(r Result, twice bool) {
	s.Seeds++
	s.Events += int64(r.Events)
	s.Elections += int64(r.Elections)
	s.Crashes += int64(r.Crashes)
	s.Committed += int64(r.Committed)
	if twice {
		s.Twice++
	}
	if r.Failure != nil {
		s.Failures++
	}
}
