package consensus

import (
	"fmt"
	"slices"
	"testing"
)

// TestMergedStatesBehaveAlike: two states with one canonical form must lead to
// the same canonical forms, or the exhaustive check merges what it must not.
func TestMergedStatesBehaveAlike(t *testing.T) {
	for _, b := range []bounds{
		{members: three(), first: 1, writers: 2, terms: 2, bytes: 1, noHorizon: true},
		{members: three(), first: 1, writers: 1, terms: 2, bytes: 1, crashes: 1, losses: 1, restarts: 1, gossip: true},
	} {
		type seen struct {
			leads []stateKey
			first *point
		}
		known := map[stateKey]*seen{}
		var s scratch
		var events []event
		leads := func(p *point) (keys []stateKey) {
			events = p.events(&b, events)
			for _, e := range events {
				if q := p.after(&b, e); q.within(&b) {
					keys = append(keys, s.key(q, &b))
				}
			}
			slices.SortFunc(keys, func(x, y stateKey) int {
				return slices.Compare(x[:], y[:])
			})
			return slices.Compact(keys)
		}
		front := []*point{b.root()}
		known[s.key(front[0], &b)] = &seen{leads(front[0]), front[0]}
		for checked := 0; len(front) > 0 && checked < 6_000; {
			p := front[0]
			front = front[1:]
			for _, e := range slices.Clone(p.events(&b, nil)) {
				q := p.after(&b, e)
				if !q.within(&b) {
					continue
				}
				checked++
				k, l := s.key(q, &b), leads(q)
				if x := known[k]; x == nil {
					known[k] = &seen{l, q}
					front = append(front, q)
				} else if !slices.Equal(x.leads, l) {
					t.Fatalf("%v: two states are merged and lead elsewhere\n--- one\n%s--- other\n%s%s", b, retell(b, true, x.first.from), retell(b, true, q.from), b.differ(x.first, q))
				}
			}
		}
	}
}

// differ lists what only one of two states leads to.
func (b *bounds) differ(x, y *point) string {
	var s scratch
	out := ""
	for i, pair := range [2][2]*point{{x, y}, {y, x}} {
		other := map[stateKey]bool{}
		for _, e := range pair[1].events(b, nil) {
			other[s.key(pair[1].after(b, e), b)] = true
		}
		for _, e := range pair[0].events(b, nil) {
			if q := pair[0].after(b, e); q.within(b) && !other[s.key(q, b)] {
				out += fmt.Sprintf("only %s: %v\n%x\n", [2]string{"one", "the other"}[i], e, s.best)
			}
		}
	}
	return out
}
