package check

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// TestTwoProposers: two writers of one log at once would mix their bytes.
// Exactly one goes on; the other ends and names the term that won.
func TestTwoProposers(t *testing.T) {
	f, c := start(t)
	create(t, c, 0)
	dir := t.TempDir()
	acks := [2]string{filepath.Join(dir, "first"), filepath.Join(dir, "second")}
	first := spawn(t, f, "load", "--duration", "4s", "--concurrency", "8", "--ack-log", acks[0])
	eventually(t, "the first proposer writes", func() bool { return committed(t.Context(), c) > 0 })
	second := spawn(t, f, "load", "--duration", "2s", "--concurrency", "8", "--ack-log", acks[1])
	codes := [2]int{first.code(t), second.code(t)}
	loser := first
	switch codes {
	case [2]int{7, 0}:
	case [2]int{0, 7}:
		loser = second
	default:
		t.Fatalf("exit codes %v, want one 0 and one 7\nfirst: %s\nsecond: %s", codes, &first.err, &second.err)
	}
	if named := regexp.MustCompile(`won term [1-9][0-9]*`); !named.MatchString(loser.err.String()) {
		t.Errorf("the loser does not name the winning term: %s", &loser.err)
	}
	must(t, f, "load", "--duration", "100ms", "--settle", testWait.String())
	for _, log := range acks {
		audited(t, c, log)
	}
}

// TestStopsInTime: SIGTERM with streams open must not take longer than five
// seconds, and must not look like a failure.
func TestStopsInTime(t *testing.T) {
	f, c := start(t)
	create(t, c, 0)
	load := spawn(t, f, "load", "--duration", "1m", "--concurrency", "8")
	eventually(t, "there is a stream", func() bool { return committed(t.Context(), c) > 0 })
	for _, n := range f.Nodes {
		began := time.Now()
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("node %d left in %v", n.ID, time.Since(began).Round(time.Millisecond))
	}
	load.kill()
}
