package vfs

import (
	"slices"
	"strings"
	"syscall"
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

func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return pathError("rename", oldName+" to "+newName, m.rename(oldName, newName))
}

// rename asks its questions in the kernel's order, to give the kernel's errors.
func (m *Mem) rename(oldName, newName string) error {
	oldDir, oldBase, err := m.parent(oldName)
	if err == syscall.EEXIST {
		return syscall.EBUSY // the root
	}
	if err != nil {
		return err
	}
	newDir, newBase, err := m.parent(newName)
	if err == syscall.EEXIST {
		return syscall.EBUSY
	}
	if err != nil {
		return err
	}
	node := oldDir.entry(oldBase)
	if node == nil {
		return syscall.ENOENT
	}
	victim := newDir.entry(newBase)
	oldWay, newWay := split(oldName), split(newName)
	switch {
	case within(newWay, oldWay):
		return syscall.EINVAL // into itself
	case within(oldWay, newWay):
		return syscall.ENOTEMPTY // over a directory it is in
	case node == victim:
		return nil
	case victim == nil:
	case node.data == nil && victim.data != nil:
		return syscall.ENOTDIR
	case node.data != nil && victim.data == nil:
		return syscall.EISDIR
	case len(victim.entries) > 0:
		return syscall.ENOTEMPTY
	}
	c := &entryChange{
		slots: []slot{{dir: oldDir, name: oldBase}, {dir: newDir, name: newBase, node: node}},
		nodes: []*inode{node},
		moves: node.data == nil,
	}
	if victim != nil {
		c.nodes = append(c.nodes, victim)
	}
	m.change(c)
	if victim != nil {
		m.unlink(victim)
	}
	return nil
}

// within says whether way leads to a place below top.
func within(way, top []string) bool {
	return len(way) > len(top) && slices.Equal(way[:len(top)], top)
}

func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	if err == syscall.EEXIST {
		err = syscall.EBUSY // the root
	}
	if err != nil {
		return pathError("remove", name, err)
	}
	n := dir.entry(base)
	if n == nil {
		return pathError("remove", name, syscall.ENOENT)
	}
	if len(n.entries) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	m.change(&entryChange{slots: []slot{{dir: dir, name: base}}, nodes: []*inode{n}, moves: n.data == nil})
	m.unlink(n)
	return nil
}

func (m *Mem) MkdirAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "" {
		return pathError("mkdir", name, syscall.ENOENT)
	}
	at := m.root
	for _, base := range split(name) {
		next := at.entry(base)
		if next == nil {
			next = newDirectory()
			m.change(&entryChange{slots: []slot{{dir: at, name: base, node: next}}, nodes: []*inode{next}})
		}
		if next.data != nil {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		at = next
	}
	return nil
}

func (m *Mem) ReadDir(name string) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookupDir(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	entries := make([]Entry, len(n.entries))
	for i, e := range n.entries {
		entries[i] = Entry{Name: e.name, Dir: e.node.data == nil}
		if !entries[i].Dir {
			entries[i].Size = e.node.data.cache.size
		}
	}
	return entries, nil
}

func (m *Mem) lookupDir(name string) (*inode, error) {
	n, err := m.lookup(name)
	if err == nil && n.data != nil {
		err = syscall.ENOTDIR
	}
	return n, err
}

func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookupDir(name)
	if err != nil {
		return pathError("syncdir", name, err)
	}
	m.syncEntries(n)
	return nil
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
