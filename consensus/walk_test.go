package consensus

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Random walks go deeper than an exhaustive check can: messages stay in
// flight, connections end at one side first and their late messages arrive
// after those of newer ones, turns take several messages, nodes crash, writers
// are replaced, and acceptors tell each other what is committed.

// walk takes up to steps steps from seed and returns the first thing that broke.
func walk(b bounds, seed uint64, steps int) (taken int, committed int, bad *found) {
	r := rand.New(rand.NewPCG(seed, 1))
	p := b.root()
	p.atomic = false
	var events []event
	for range steps {
		events = p.events(&b, events)
		var has [kinds]int
		for _, e := range events {
			has[e.kind]++
		}
		if len(events) == 0 {
			break
		}
		var e event
		for pick := kind(r.IntN(int(kinds))); ; pick = kind(r.IntN(int(kinds))) {
			rare := pick == cutting || pick == muting || pick == crashing || pick == restarting || pick == expiring
			slow := pick != delivering && pick != answering && pick != feeding
			if has[pick] == 0 || rare && r.IntN(12) != 0 || slow && r.IntN(2) != 0 {
				continue
			}
			i := r.IntN(has[pick])
			for _, e = range events {
				if e.kind == pick {
					if i--; i < 0 {
						break
					}
				}
			}
			break
		}
		trail := &trail{p.from, e}
		p.from = trail
		p.apply(&b, e)
		taken++
		if p.broken != "" {
			return taken, len(p.committed), &found{p.broken, trail}
		}
		if !p.within(&b) {
			break
		}
	}
	return taken, len(p.committed), nil
}

func TestWalks(t *testing.T) {
	budget := map[string]time.Duration{"ci": 60 * time.Second, "long": 30 * time.Minute}[*depth]
	if budget == 0 {
		budget = 6 * time.Second
	}
	joint := wal.Membership{Generation: 2, Members: []wal.Member{{ID: 1}, {ID: 2}, {ID: 3}}, NewMembers: []wal.Member{{ID: 3}, {ID: 4}, {ID: 5}}}
	worlds := []bounds{
		{members: three(), first: 1, writers: 2, terms: 5, bytes: 4, crashes: 3, losses: 6, restarts: 1, gossip: true},
		{members: three(), first: 1, writers: 2, terms: 5, bytes: 4, crashes: 99, losses: 99, gossip: true},
		{members: three(), first: 0, writers: 3, terms: 8, bytes: 6, crashes: 2, losses: 4, restarts: 2},
		{members: joint, first: 1, writers: 2, terms: 5, bytes: 4, crashes: 1, losses: 3},
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	walks, steps, fruitful := 0, 0, 0
	var bad *found
	var badWorld bounds
	end := time.Now().Add(budget)
	for i := range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := uint64(i); ; seed += uint64(runtime.GOMAXPROCS(0)) {
				b := worlds[seed%uint64(len(worlds))]
				n, committed, f := walk(b, seed, 240)
				mu.Lock()
				walks, steps = walks+1, steps+n
				if committed > 0 {
					fruitful++
				}
				if f != nil && bad == nil {
					bad, badWorld = f, b
				}
				stop := bad != nil || time.Now().After(end)
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d walks, %d steps, %d with a commit", walks, steps, fruitful)
	if bad != nil {
		t.Fatalf("%s\n%s", bad.what, retell(badWorld, false, bad.path))
	}
	if fruitful*4 < walks {
		t.Errorf("only %d of %d walks committed anything: the walks are vacuous", fruitful, walks)
	}
}
