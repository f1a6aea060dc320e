package sim

import "math/rand/v2"

// Kinds of chance. Each thing that chance decides for has a generator of its
// own, so that leaving a step out of a script changes as little else as possible.
const (
	chanceShape = iota + 1
	chanceScript
	chanceConn
	chanceNode
	chanceDisk
	chanceWriter
	chanceCrash
	chanceCheck
)

// chance returns the generator of one thing.
func chance(seed uint64, kind, a, b, c int) *rand.Rand {
	h := mix(seed ^ mix(uint64(kind)))
	for _, x := range [3]int{a, b, c} {
		h = mix(h ^ uint64(x))
	}
	return rand.New(rand.NewPCG(h, seed))
}

// mix is the finaliser of splitmix64: every bit of x reaches every bit of the result.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// between is a number in [low, high].
func between(r *rand.Rand, low, high int64) int64 { return low + r.Int64N(high-low+1) }

// oneIn is true once in n times.
func oneIn(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }
