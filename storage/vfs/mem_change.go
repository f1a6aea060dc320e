package vfs

import "slices"

// entryChange is one operation on directories that is not durable yet: one slot
// set or emptied, or for a rename two. A crash keeps all of it or nothing.
type entryChange struct {
	slots []slot
	nodes []*inode // whose names it changes
	moves bool     // it moves or replaces a directory
}

// slot is a name in a directory and what it stands for after the change.
type slot struct {
	dir    *inode
	name   string
	node   *inode // nil: nothing
	synced bool   // SyncDir of dir was called since
}

// needs says whether c makes no sense without the earlier change. Changes to the
// same name or file build on one another. Moves of directories build on
// everything, and everything builds on them: they are rare here, and the tree
// must stay one. So the changes that a crash keeps of one file are always a
// beginning of its own history, and no file ends up with two names.
func (c *entryChange) needs(earlier *entryChange) bool {
	if c.moves || earlier.moves {
		return true
	}
	for _, s := range c.slots {
		for _, e := range earlier.slots {
			if s.dir == e.dir && s.name == e.name {
				return true
			}
		}
	}
	return slices.ContainsFunc(c.nodes, func(n *inode) bool { return slices.Contains(earlier.nodes, n) })
}

// change performs c for everyone to see; it is durable later.
func (m *Mem) change(c *entryChange) {
	for _, s := range c.slots {
		s.dir.entries = withEntry(s.dir.entries, s.name, s.node)
	}
	m.pending = append(m.pending, c)
}

func (m *Mem) createIn(dir *inode, name string) *inode {
	n := newFile()
	m.change(&entryChange{slots: []slot{{dir: dir, name: name, node: n}}, nodes: []*inode{n}})
	return n
}

// syncEntries makes every change durable whose directories have now all been
// synced, and the earlier changes it needs.
func (m *Mem) syncEntries(dir *inode) {
	durable := make([]bool, len(m.pending))
	for i, c := range m.pending {
		durable[i] = true
		for j := range c.slots {
			s := &c.slots[j]
			s.synced = s.synced || s.dir == dir
			durable[i] = durable[i] && s.synced
		}
	}
	for i := len(m.pending) - 1; i >= 0; i-- {
		for j := 0; durable[i] && j < i; j++ {
			durable[j] = durable[j] || m.pending[i].needs(m.pending[j])
		}
	}
	var rest []*entryChange
	for i, c := range m.pending {
		if !durable[i] {
			rest = append(rest, c)
			continue
		}
		for _, s := range c.slots {
			s.dir.durable = withEntry(s.dir.durable, s.name, s.node)
		}
	}
	m.pending = rest
}
