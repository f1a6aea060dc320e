package vfs

import (
	"io"
	"path"
	"strings"
	"sync"
	"syscall"
)

// Mem is a disk in memory, for tests: it answers as [OS] does, and can be
// cloned at any moment as a power cut at that moment would leave it.
//
// It knows three places where a byte can be. The cache is what the kernel shows
// to every reader. The disk is what survives. In between are the unsynced
// changes: sectors of 512 bytes, sizes, and directory entries, each of which a
// power cut keeps or loses by itself.
//
//   - Datasync moves the sectors and the size of its own file, nothing else.
//   - SyncDir makes the entries of its own directory durable, not what is in
//     the files. A rename between directories needs both of them synced; until
//     then a crash undoes it or keeps it, but never half of it. Of two unsynced
//     changes to the same name or the same file the later is never kept without
//     the earlier.
//   - A Datasync that fails (see [Fault]) leaves what Linux leaves: the pages
//     are clean, so that the next Datasync returns nil, the cache shows the new
//     bytes, and the disk does not have them. ReadAtUncached tells the truth,
//     and the cache goes on lying after it.
//
// Relative and absolute names are the same. Nothing here reads a clock or
// draws from chance, except from a generator the caller hands in. All methods
// may be called concurrently.
type Mem struct {
	mu   sync.Mutex // guards everything below, inodes and handles included
	root *inode

	// pending are the changes to directories that SyncDir has not yet made
	// durable, oldest first.
	pending []*entryChange

	// pagesUsed counts the pages held by files that can still be reached: by
	// name or by an open handle.
	pagesUsed, pagesMax int64

	// life is that of the process using the disk; a handle of an earlier one is dead.
	life int
}

var _ FS = (*Mem)(nil)

// NewMem is an empty disk of 1 TiB.
func NewMem() *Mem {
	return &Mem{root: newDirectory(), pagesMax: 1 << 40 / pageBytes}
}

// SetCapacity sets the size of the disk in bytes, counted in pages of 4 KiB
// that files have been written to. A write that needs another page when there
// is none left fails with ENOSPC, after writing what did fit; what is already
// there can be overwritten, also when the disk is made smaller than its content.
func (m *Mem) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pagesMax = bytes / pageBytes
}

// Restart ends the process that used the disk, without a power cut: every open
// file and lock is gone, but the cache stays, and with it what is unsynced and
// what a failed Datasync made it claim.
func (m *Mem) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life++
	m.pagesUsed = m.root.restart()
}

func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	if dir.entry(base) != nil {
		return nil, pathError("create", name, syscall.EEXIST)
	}
	return m.handle(name, m.createIn(dir, base), true), nil
}

func (m *Mem) Open(name string) (File, error)     { return m.open(name, true) }
func (m *Mem) OpenRead(name string) (File, error) { return m.open(name, false) }

func (m *Mem) open(name string, writable bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(name)
	if err == nil && n.data == nil {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return m.handle(name, n, writable), nil
}

// Lock is per file, like flock: a rename does not carry it elsewhere. A crash
// or a Restart frees it.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(name)
	if err == syscall.ENOENT {
		var dir *inode
		var base string
		if dir, base, err = m.parent(name); err == nil {
			n = m.createIn(dir, base)
		}
	}
	switch {
	case err != nil:
	case n.data == nil:
		err = syscall.EISDIR
	case n.locked:
		err = ErrLocked
	}
	if err != nil {
		return nil, pathError("lock", name, err)
	}
	n.locked = true
	f := m.handle(name, n, true)
	f.lock = true
	return f, nil
}

func (m *Mem) FreeBytes(name string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.lookup(name); err != nil {
		return 0, pathError("statfs", name, err)
	}
	return uint64(max(m.pagesMax-m.pagesUsed, 0)) * pageBytes, nil
}

// FlipBit flips one bit (0 to 7) of the byte at off, as rot on the disk does
// it: it is durable at once, and a reader of a clean sector sees it. A sector
// with unsynced changes shows them, and they overwrite the damage when synced.
func (m *Mem) FlipBit(name string, off int64, bit uint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(name)
	switch {
	case err != nil:
	case n.data == nil:
		err = syscall.EISDIR
	case off < 0 || off >= n.data.cache.size || bit > 7:
		err = syscall.EINVAL
	}
	if err != nil {
		return pathError("flip bit", name, err)
	}
	held := n.data.cache.held
	n.data.flipBit(off, bit)
	m.pagesUsed += n.data.cache.held - held
	return nil
}

// handle opens n. The caller holds mu, as everywhere below.
func (m *Mem) handle(name string, n *inode, writable bool) *memFile {
	n.handles++
	return &memFile{mem: m, name: name, node: n, writable: writable, life: m.life}
}

// split cleans name into the names on the way to it; none for the root.
func split(name string) []string {
	clean := path.Clean("/" + name)[1:]
	if clean == "" {
		return nil
	}
	return strings.Split(clean, "/")
}

// lookup finds what name names: ENOENT if nothing, ENOTDIR if the way to it
// leads through a file.
func (m *Mem) lookup(name string) (*inode, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	return m.walk(split(name))
}

// parent finds the directory that name is, or would be, an entry of.
func (m *Mem) parent(name string) (dir *inode, base string, err error) {
	if name == "" {
		return nil, "", syscall.ENOENT
	}
	way := split(name)
	if len(way) == 0 {
		return nil, "", syscall.EEXIST
	}
	last := len(way) - 1
	if dir, err = m.walk(way[:last]); err != nil {
		return nil, "", err
	}
	if dir.data != nil {
		return nil, "", syscall.ENOTDIR
	}
	return dir, way[last], nil
}

func (m *Mem) walk(way []string) (*inode, error) {
	n := m.root
	for _, name := range way {
		if n.data != nil {
			return nil, syscall.ENOTDIR
		}
		if n = n.entry(name); n == nil {
			return nil, syscall.ENOENT
		}
	}
	return n, nil
}
