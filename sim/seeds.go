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

// Seeds runs n seeds from first on with so many workers, until ctx ends. done,
// if set, is told of every result, one at a time.
func Seeds(ctx context.Context, first uint64, n, workers int, done func(Result)) Summary {
	var sum Summary
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := first
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				if next == first+uint64(n) || ctx.Err() != nil {
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
				shorten := r.Failure != nil && len(sum.Failed) < failedMax
				mu.Unlock()
				if shorten {
					r = Shorten(seed, false, 400)
				}
				mu.Lock()
				if shorten {
					sum.Failed = append(sum.Failed, r)
				}
				if done != nil {
					done(r)
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
