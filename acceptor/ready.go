package acceptor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// NotReady returns why this node should not be used now; nothing means that it
// should. One bad timeline among many is no reason: the others are served.
func (n *Node) NotReady() []string {
	var reasons []string
	if n.draining.Load() {
		reasons = append(reasons, "the node is shutting down")
	}
	if c := n.count(); c.Opened > 0 && c.Poisoned >= c.Opened {
		reasons = append(reasons, fmt.Sprintf("the disk has failed for all %d timelines in use", c.Opened))
	}
	return reasons
}

// disk is the space on the file system of the data directory, free for an
// unprivileged writer and in all; 0 if it cannot be told.
func (n *Node) disk() (free, total uint64) {
	free, err := n.cfg.FS.FreeBytes(n.cfg.DataDir)
	if err != nil {
		return 0, 0
	}
	var st unix.Statfs_t
	if unix.Statfs(n.cfg.DataDir, &st) == nil {
		total = st.Blocks * uint64(st.Frsize)
	}
	return free, max(total, free)
}
