package proposer_test

import (
	"errors"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestMisfitIsNamed: an acceptor whose log no correct run can have made, such as
// an old copy that was put back, was reconnected to for ever without a word.
func TestMisfitIsNamed(t *testing.T) {
	c := newCluster(t, 3)
	first := open(t, c.config())
	commit(t, first, []byte("what all of them hold"))
	eventually(t, "all hold it", func() bool { return len(c.nodes[2].bytes()) == 21 })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	odd := c.nodes[2]
	odd.stop()
	odd.set(func(n *node) { n.state.History = wal.History{{Term: n.state.History[0].Term, LSN: fakeFirst + 3}} })
	odd.start()
	p := open(t, c.config())
	var misfit *wal.DivergenceError
	eventually(t, "it is said what is wrong with it", func() bool { return errors.As(p.Peers()[2].Err, &misfit) })
	commit(t, p, []byte("and on"))
	if !errors.As(p.Peers()[2].Err, &misfit) {
		t.Errorf("a moment later: %v", p.Peers()[2].Err)
	}
}
