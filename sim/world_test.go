package sim

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// TestSeeds runs some worlds; HOLDFAST_SIM_SEEDS says how many.
func TestSeeds(t *testing.T) {
	n := 250
	if s := os.Getenv("HOLDFAST_SIM_SEEDS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatalf("HOLDFAST_SIM_SEEDS: %v", err)
		}
	}
	// One failure is enough to fail; it is shown shortened unless nobody wants to read it.
	tries := 300
	if os.Getenv("HOLDFAST_SIM_SHORTEN") == "0" {
		tries = 0
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	sum := Lot{Seeds: n, Workers: runtime.GOMAXPROCS(0), Tries: tries, Done: func(r Result) {
		if r.Failure != nil {
			stop()
		}
	}}.Run(ctx)
	t.Logf("%d seeds, %d events, %d elections, %d power cuts, %d bytes committed, %d run twice, %d failures",
		sum.Seeds, sum.Events, sum.Elections, sum.Crashes, sum.Committed, sum.Twice, sum.Failures)
	for _, r := range sum.Failed {
		t.Errorf("seed %d (%s): %v", r.Seed, r.World, r.Failure)
		for _, s := range r.Script {
			t.Log(s)
		}
	}
	if n := int64(n); sum.Failures == 0 && (sum.Events < 2000*n || sum.Elections < n || sum.Committed < 20_000*n) {
		t.Errorf("too little happened: the runs are vacuous")
	}
}

// TestReplay: one seed is one run, to the last line of its trace.
func TestReplay(t *testing.T) {
	for seed := range uint64(3) {
		var first, second bytes.Buffer
		x, y := Run(seed, false, &first), Run(seed, false, &second)
		if !bytes.Equal(first.Bytes(), second.Bytes()) || x.Digest != y.Digest {
			t.Fatalf("two traces of seed %d differ", seed)
		}
		if quiet := Run(seed, false, nil); quiet.Digest != x.Digest {
			t.Fatalf("seed %d runs differently when somebody listens", seed)
		}
	}
}

// TestShortenKeepsTheFault: what is not needed for a failure goes.
func TestShortenKeepsTheFault(t *testing.T) {
	s := shapeOf(1, true)
	script := scriptOf(1, s)
	fails := func(script []step) *Failure {
		for _, x := range script {
			if x.Do == doRead {
				return &Failure{Invariant: "a read"}
			}
		}
		return nil
	}
	short, _ := shorten(script, fails, 200)
	if len(short) != 1 || short[0].Do != doRead {
		t.Fatalf("one read is enough, but %d steps were kept of %d", len(short), len(script))
	}
}
