package proposer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/proposer"
)

// TestIncompleteCreation: a creation that was killed on its way is completed,
// not written to: that would leave the third member out for good.
func TestIncompleteCreation(t *testing.T) {
	c := newRealCluster(t)
	third := c.nodes[2]
	third.stop()
	if err := os.RemoveAll(filepath.Join(third.dir, c.Timeline.Tenant)); err != nil {
		t.Fatal(err)
	}
	third.start()
	c.Acceptors[2] = third.addr
	if p, err := proposer.Open(patient(t), c.Config); !errors.Is(err, proposer.ErrIncomplete) {
		if err == nil {
			p.Close()
		}
		t.Fatalf("a log was opened that is not on all of its members: %v", err)
	}
	if _, created, err := c.admin.Create(patient(t), admin.Creation{Timeline: c.Timeline, First: fakeFirst}); err != nil || !created {
		t.Fatal(created, err)
	}
	p := open(t, c.Config)
	commit(t, p, []byte("all three"))
	eventually(t, "every member has it", func() bool {
		for _, m := range p.Peers() {
			if m.Flush != p.Tail() {
				return false
			}
		}
		return true
	})
}
