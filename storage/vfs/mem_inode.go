package vfs

import (
	"slices"
	"strings"
)

// inode is a file or a directory of a Mem, whatever its name is at the moment.
type inode struct {
	data *content // nil for a directory

	// entries are a directory's entries as everyone sees them, and durable
	// those that survive a power cut; by name. A slice is never changed, only
	// replaced, so that clones may share it.
	entries, durable []dirent

	handles  int  // open now
	unlinked bool // no name leads here any more; gone with the last handle
	locked   bool
}

type dirent struct {
	name string
	node *inode
}

func newDirectory() *inode { return &inode{} }
func newFile() *inode      { return &inode{data: &content{}} }

// entry is the inode with that name in a directory, or nil.
func (n *inode) entry(name string) *inode {
	if i, found := findEntry(n.entries, name); found {
		return n.entries[i].node
	}
	return nil
}

func findEntry(entries []dirent, name string) (int, bool) {
	return slices.BinarySearchFunc(entries, name, func(e dirent, name string) int {
		return strings.Compare(e.name, name)
	})
}

// withEntry is a copy of entries in which name stands for node, or for nothing.
func withEntry(entries []dirent, name string, node *inode) []dirent {
	i, found := findEntry(entries, name)
	end := i
	if found {
		end++
	}
	changed := make([]dirent, 0, len(entries)+1)
	changed = append(changed, entries[:i]...)
	if node != nil {
		changed = append(changed, dirent{name, node})
	}
	return append(changed, entries[end:]...)
}

// restart forgets handles and locks of n and everything below, and returns the
// pages held there.
func (n *inode) restart() (pages int64) {
	n.handles, n.locked = 0, false
	if n.data != nil {
		return n.data.cache.held
	}
	for _, e := range n.entries {
		pages += e.node.restart()
	}
	return pages
}

// unlink takes note that n has lost its name.
func (m *Mem) unlink(n *inode) {
	n.unlinked = true
	m.releaseUnused(n)
}

// releaseUnused gives back the space of a file that nothing leads to.
func (m *Mem) releaseUnused(n *inode) {
	if n.unlinked && n.handles == 0 && n.data != nil {
		m.pagesUsed -= n.data.cache.held
	}
}
