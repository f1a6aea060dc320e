package vfs

import "math/rand/v2"

// Crash is the disk as a power cut at this moment could leave it. Every sector
// that was written and not synced is, each by itself, as it was, as it was
// written (at any time since), or, rarely and only where the writing changed
// it, garbage; the size of a file is any that it has had since its last sync;
// and every unsynced change to a directory is there or is not. What is kept
// depends on rng alone.
//
// Nobody has the clone open and nobody holds a lock on it. m is as it was, so
// that a test may ask after every step. A clone shares all synced data with the
// disk it is of and costs little more than its number of files.
func (m *Mem) Crash(rng *rand.Rand) *Mem { return m.crash(&fate{rng: rng}) }

// CrashWorst is the disk after a power cut at which nothing unsynced was kept.
func (m *Mem) CrashWorst() *Mem { return m.crash(&fate{}) }

// CrashKeepAll is the disk after a power cut at which everything unsynced had
// just reached it. What a failed Datasync lost stays lost.
func (m *Mem) CrashKeepAll() *Mem { return m.crash(&fate{keepAll: true}) }

func (m *Mem) crash(f *fate) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := &Mem{pagesMax: m.pagesMax}
	f.decideEntries(m.pending)
	out.root = out.cloneDir(m.root, f)
	return out
}

// cloneDir copies what fate leaves of a directory and of everything below.
func (m *Mem) cloneDir(dir *inode, f *fate) *inode {
	was, changed := f.entries[dir]
	if !changed {
		was = dir.durable
	}
	n := newDirectory()
	n.entries = make([]dirent, len(was))
	for i, e := range was {
		n.entries[i].name = e.name
		if e.node.data == nil {
			n.entries[i].node = m.cloneDir(e.node, f)
			continue
		}
		data := e.node.data.crash(f)
		m.pagesUsed += data.cache.held
		n.entries[i].node = &inode{data: data}
	}
	n.durable = n.entries
	return n
}

// crash is what fate leaves of a file: disk and cache alike.
func (c *content) crash(f *fate) *content {
	left := c.disk.share()
	size := left.size
	if c.dirtyFrom < c.dirtyTo {
		f.nextFile()
		size = f.size(c)
		for i := c.dirtyFrom; i < c.dirtyTo; i++ {
			if c.dirty[i] != 0 {
				f.page(c, i, &left)
			}
		}
	}
	// Sectors may have got there without the size that covers them.
	left.truncate(size)
	return &content{cache: left.share(), disk: left.share()}
}

// fate is what a power cut does to the unsynced: with rng it is chance, without
// it all is kept or all is lost.
type fate struct {
	rng     *rand.Rand
	keepAll bool

	// entries are the directories that differ from their durable entries.
	// Only ever looked up, so its order does not matter.
	entries map[*inode][]dirent

	// arrival is the probability that an unsynced sector of the file in hand
	// got to the disk; different for each, so that files survive whole, not at
	// all, and in shreds.
	arrival float64
}

// garbageOneIn is how rarely a changed sector is neither old nor new.
const garbageOneIn = 64

func (f *fate) nextFile() {
	if f.rng != nil {
		f.arrival = [...]float64{0, 0.1, 0.5, 0.9, 1}[f.rng.IntN(5)]
	}
}

// version picks one of n states, oldest first, the first being the durable one.
func (f *fate) version(n int) int {
	switch {
	case f.rng != nil && f.rng.Float64() < f.arrival:
		return 1 + f.rng.IntN(n-1)
	case f.keepAll:
		return n - 1
	}
	return 0
}

// decideEntries settles which changes to directories are kept. One that needs a
// lost one is lost.
func (f *fate) decideEntries(pending []*entryChange) {
	if f.rng == nil && !f.keepAll {
		return
	}
	f.entries = make(map[*inode][]dirent)
	var lost []*entryChange
	for _, c := range pending {
		keep := f.keepAll || f.rng.Uint32()&1 != 0
		for i := 0; keep && i < len(lost); i++ {
			keep = !c.needs(lost[i])
		}
		if !keep {
			lost = append(lost, c)
			continue
		}
		for _, s := range c.slots {
			was, changed := f.entries[s.dir]
			if !changed {
				was = s.dir.durable
			}
			f.entries[s.dir] = withEntry(was, s.name, s.node)
		}
	}
}

// size picks a size for c, which has unsynced writes.
func (f *fate) size(c *content) int64 {
	sizes := append([]int64{c.disk.size}, c.sizes...)
	return append(sizes, c.cache.size)[f.version(len(sizes)+1)]
}

// page puts into left what becomes of the dirty sectors of page i of c.
func (f *fate) page(c *content, i int, left *image) {
	var changed *page
	for s := range pageSectors {
		if c.dirty[i]&(1<<s) == 0 {
			continue
		}
		earlier := c.earlier[int64(i)*pageSectors+int64(s)]
		was, is := c.disk.page(i).sectorOf(s), c.cache.page(i).sectorOf(s)
		if len(earlier) == 0 && *was == *is {
			continue
		}
		version := f.version(len(earlier) + 2)
		if version == 0 {
			continue
		}
		if version <= len(earlier) {
			is = earlier[version-1]
		}
		if changed == nil {
			changed = c.disk.page(i).clone()
			left.setPage(i, changed)
		}
		*changed.sectorOf(s) = *is
		if f.rng != nil && f.rng.IntN(garbageOneIn) == 0 && *was != *is {
			f.garble(changed.sectorOf(s), was)
		}
	}
}

// garble damages a sector that was being written: it is torn, its beginning new
// and its end old, or it is noise.
func (f *fate) garble(s, was *sector) {
	if f.rng.Uint32()&1 != 0 {
		at := f.rng.IntN(sectorBytes)
		copy(s[at:], was[at:])
		return
	}
	for i := range s {
		s[i] = byte(f.rng.Uint32())
	}
}
