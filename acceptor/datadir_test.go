package acceptor

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
)

func TestADataDirectoryBelongsToOneNode(t *testing.T) {
	disk := vfs.NewMem()
	n := start(t, config(t, disk))
	if _, err := New(config(t, disk)); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("a second process: %v", err)
	}
	n.create(mainline, born)
	n.leave()

	c := config(t, disk)
	c.NodeID = 2
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "belongs to node 1") {
		t.Errorf("another node's disk: %v", err)
	}
	if err := disk.Remove("data/node.id"); err != nil {
		t.Fatal(err)
	}
	if _, err := New(config(t, disk)); err == nil || !strings.Contains(err.Error(), "node.id") {
		t.Errorf("timelines and no node.id: %v", err)
	}
	if err := writeSmall(disk, "data", "node.id", "one\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := New(config(t, disk)); err == nil || !strings.Contains(err.Error(), "does not hold a node id") {
		t.Errorf("a node.id that is none: %v", err)
	}
	// Whatever was refused has let go of the lock.
	if err := disk.Remove("data/node.id"); err != nil {
		t.Fatal(err)
	}
	if err := writeSmall(disk, "data", "node.id", "1\n"); err != nil {
		t.Fatal(err)
	}
	start(t, config(t, disk))
}

// TestATimelineOfOtherNodesIsNotUsed: a directory that was copied from
// elsewhere would vote for a node that it does not belong to.
func TestATimelineOfOtherNodesIsNotUsed(t *testing.T) {
	disk := vfs.NewMem()
	n := start(t, config(t, disk))
	n.create(mainline, born)
	n.leave()
	if err := disk.Remove("data/node.id"); err != nil {
		t.Fatal(err)
	}
	if err := writeSmall(disk, "data", "node.id", "2\n"); err != nil {
		t.Fatal(err)
	}
	c := config(t, disk)
	c.NodeID = 2
	n = start(t, c)
	x := n.dial()
	x.send(hello(mainline, born, 1))
	if e := x.ended(); e.Reason != "LOST" {
		t.Errorf("ended with %v", e)
	}
}
