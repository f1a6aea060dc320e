package sim

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

// Result is what came of one seed.
type Result struct {
	Seed      uint64   `json:"seed"`
	World     string   `json:"world"`
	Events    int      `json:"events"`
	Elections int      `json:"elections"`
	Committed int      `json:"committed_bytes"`
	Crashes   int      `json:"crashes"`
	Digest    uint64   `json:"digest"` // equal digests: equal runs
	Failure   *Failure `json:"failure,omitempty"`

	// Script is what was done to the world; after Shorten, what is needed of it.
	Script []string `json:"script,omitempty"`
}

// Run runs the world of a seed. With a trace every event is written to it.
// A small world has a quarter of the script.
func Run(seed uint64, small bool, trace io.Writer) Result {
	s := shapeOf(seed, small)
	return play(seed, s, scriptOf(seed, s), trace)
}

func play(seed uint64, s shape, script []step, trace io.Writer) (result Result) {
	w := (*world)(nil)
	defer func() {
		if p := recover(); p != nil {
			result.Failure = &Failure{"NoPanic", fmt.Sprintf("%v\n%s", p, firstLines(debug.Stack(), 24)), 0}
			if w != nil {
				result.Events = w.events
				result.Failure.Event = w.events
			}
		}
	}()
	result = Result{Seed: seed, World: s.String()}
	w = newWorld(seed, s, trace)
	w.run(script)
	result.Events, result.Elections, result.Committed, result.Crashes = w.events, w.elections, len(w.committed), w.crashes
	result.Digest, result.Failure = w.digest, w.failure
	return result
}

func firstLines(b []byte, n int) string {
	lines := strings.SplitN(string(b), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// Shorten looks for the fewest steps of a failing seed's script that still
// break the same invariant, with at most tries runs, and returns that run's
// result with its script.
func Shorten(seed uint64, small bool, tries int) Result {
	s := shapeOf(seed, small)
	best := Result{}
	script, f := shorten(scriptOf(seed, s), func(script []step) *Failure {
		r := play(seed, s, script, nil)
		if r.Failure != nil && (best.Failure == nil || best.Failure.Invariant == r.Failure.Invariant) {
			best = r
		}
		return r.Failure
	}, tries)
	if f == nil {
		return play(seed, s, script, nil)
	}
	for _, x := range script {
		best.Script = append(best.Script, x.String())
	}
	return best
}

// shorten leaves out of a script what it can, in ever smaller pieces, while
// what fails stays the same invariant. A script that does not fail is returned whole.
func shorten(script []step, fails func([]step) *Failure, tries int) ([]step, *Failure) {
	f := fails(script)
	if f == nil {
		return script, nil
	}
	for size := len(script) / 2; size >= 1 && tries > 0; {
		shorter := false
		for from := 0; from < len(script) && tries > 0; tries-- {
			to := min(from+size, len(script))
			try := append(append([]step(nil), script[:from]...), script[to:]...)
			if g := fails(try); g != nil && g.Invariant == f.Invariant {
				f, script, shorter = g, try, true
			} else {
				from = to
			}
		}
		if !shorter || size > len(script) {
			size /= 2
		}
	}
	return script, f
}
