package vfs

import (
	"slices"
	"syscall"
)

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
