package system

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
)

// roundsVariable says how many rounds TestKillRounds has.
const roundsVariable = "HOLDFAST_KILL_ROUNDS"

// TestKillRounds kills, at random times under pgbench -N and numbered inserts,
// every combination of one and two of: bridge, primary, three acceptors. Nothing
// but starting them again is done by hand, and nothing acknowledged may be
// missing. It is short by default; HOLDFAST_KILL_ROUNDS=50 is the long form.
//
// pgbench makes the load, with its many pages and full-page images, but it
// cannot be audited: it stops at the first lost connection and keeps no list of
// what was acknowledged to it. The inserts beside it are that list: each has a
// number that no other has, and is noted only after its COMMIT has returned.
// Both go through the same WAL, so a hole in it is a hole in the numbers.
func TestKillRounds(t *testing.T) {
	t.Parallel()
	rounds := 4
	if s := os.Getenv(roundsVariable); s != "" {
		var err error
		if rounds, err = strconv.Atoi(s); err != nil {
			t.Fatal(roundsVariable, err)
		}
	}
	w := newWorldFor(t, worldLife+time.Duration(rounds)*10*time.Second, pgcluster.InitOptions{})
	w.sql(w.primary, loadTable)
	w.pgbenchInit()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	parts := []struct {
		name        string
		kill, start func()
	}{
		{"bridge", func() { w.bridge.kill() }, func() { w.startBridge(w.primary) }},
		{"primary", func() { w.check(w.primary.Stop(w.ctx, pgcluster.Kill)) }, func() { w.check(w.primary.Start(w.ctx)) }},
		{"acceptor 1", func() { w.acceptors[0].kill() }, func() { w.startAcceptor(0) }},
		{"acceptor 2", func() { w.acceptors[1].kill() }, func() { w.startAcceptor(1) }},
		{"acceptor 3", func() { w.acceptors[2].kill() }, func() { w.startAcceptor(2) }},
	}
	var combinations [][]int
	for i := range parts {
		combinations = append(combinations, []int{i})
		for j := i + 1; j < len(parts); j++ {
			combinations = append(combinations, []int{i, j})
		}
	}
	bench := w.pgbench(4)
	l := w.load(w.primary, 8)
	for round := range rounds {
		if round%len(combinations) == 0 {
			r.Shuffle(len(combinations), func(i, j int) { combinations[i], combinations[j] = combinations[j], combinations[i] })
		}
		l.more(50)
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		victims := combinations[round%len(combinations)]
		for _, i := range victims {
			parts[i].kill()
			time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		}
		for _, i := range victims {
			parts[i].start()
		}
		if !w.bridge.running() {
			t.Fatalf("round %d, killed %v: the bridge has given up", round, victims)
		}
		t.Logf("round %d: killed and started %v; %d acknowledged", round, victims, l.count())
	}
	l.more(50)
	l.end()
	bench.end()
	l.audit(w.primary)
	bench.audit(w.primary)
}
