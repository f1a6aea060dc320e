package vfs

import (
	"io"
	"math/rand/v2"
)

// content is what is in a file of a Mem: in the cache, on the disk, and in between.
type content struct {
	cache image

	// disk is what survives for certain. Its pages never change, they are only
	// replaced: clones share them. A page of cache may be written in place if and
	// only if it is not also the page of disk.
	disk image

	// dirty has, by page, a bit for every sector written since the last sync.
	// They lie in [dirtyFrom, dirtyTo).
	dirty              []uint8
	dirtyFrom, dirtyTo int

	// lies has a bit for every sector that a failed sync lost: clean, and yet
	// not on the disk. No bit is set in both dirty and lies; lies is nil until
	// the first.
	lies []uint8

	// earlier has, for a dirty sector that was written more than once, what it
	// held in between, oldest first: the kernel may have written any of it out.
	// Only ever looked up, so its order does not matter.
	earlier map[int64][]*sector

	// sizes is the same for the file's size.
	sizes []int64
}

// write puts p at off, all of it within one page, which is not a hole any more
// after it.
func (c *content) write(p []byte, off int64) {
	i := int(off / pageBytes)
	at := int(off % pageBytes)
	pg := c.cache.page(i)
	if pg == nil || pg == c.disk.page(i) {
		pg = pg.clone()
		c.cache.setPage(i, pg)
	}
	first, last := at/sectorBytes, (at+len(p)-1)/sectorBytes
	written := uint8(allPageSectors >> (pageSectors - 1 - last) & (allPageSectors << first))
	for len(c.dirty) <= i {
		c.dirty = append(c.dirty, 0)
	}
	if c.dirty[i]&written != 0 {
		c.keepEarlier(i, pg, c.dirty[i]&written, p, at)
	}
	copy(pg[at:], p)
	c.dirty[i] |= written
	if i < len(c.lies) {
		c.lies[i] &^= written
	}
	if c.dirtyFrom == c.dirtyTo {
		c.dirtyFrom, c.dirtyTo = i, i+1
	}
	c.dirtyFrom, c.dirtyTo = min(c.dirtyFrom, i), max(c.dirtyTo, i+1)

	if end := off + int64(len(p)); end > c.cache.size {
		if n := len(c.sizes); n == versionsMax {
			c.sizes = append(c.sizes[:0], c.sizes[1:]...)
		}
		c.sizes = append(c.sizes, c.cache.size)
		c.cache.size = end
	}
}

// keepEarlier saves the state of those sectors of page i that p, to be written
// at at within the page, is about to overwrite though they are dirty.
func (c *content) keepEarlier(i int, pg *page, again uint8, p []byte, at int) {
	for s := range pageSectors {
		if again&(1<<s) == 0 {
			continue
		}
		from, to := max(at, s*sectorBytes), min(at+len(p), (s+1)*sectorBytes)
		if string(pg[from:to]) == string(p[from-at:to-at]) {
			continue
		}
		if c.earlier == nil {
			c.earlier = make(map[int64][]*sector)
		}
		was := *pg.sectorOf(s)
		key := int64(i)*pageSectors + int64(s)
		versions := append(c.earlier[key], &was)
		c.earlier[key] = versions[max(0, len(versions)-versionsMax):]
	}
}

// sync moves what is dirty to the disk.
func (c *content) sync() {
	if c.dirtyFrom == c.dirtyTo {
		return // a size that a failed sync lost stays lost, too
	}
	for i := c.dirtyFrom; i < c.dirtyTo; i++ {
		if written := c.dirty[i]; written != 0 {
			c.toDisk(i, written)
		}
	}
	c.disk.size = c.cache.size
	c.clean()
}

// toDisk makes the sectors of page i on the disk those of the cache.
func (c *content) toDisk(i int, sectors uint8) {
	pg := c.cache.page(i)
	if c.lie(i) == 0 && c.dirty[i]&^sectors == 0 {
		c.disk.setPage(i, pg) // all the other sectors are equal
		return
	}
	merged := c.disk.page(i).clone()
	for s := range pageSectors {
		if sectors&(1<<s) != 0 {
			*merged.sectorOf(s) = *pg.sectorOf(s)
		}
	}
	c.disk.setPage(i, merged)
}

// failSync does what Linux does to the cache when the device refuses the
// sectors of a sync: all are clean from then on. With rng, half of them reached
// the disk before the error; without it, none. What is lost stays lost until it
// is written again: Linux would write it along with a neighbour in the same
// page, but nobody may count on that.
func (c *content) failSync(rng *rand.Rand) {
	for i := c.dirtyFrom; i < c.dirtyTo; i++ {
		written := c.dirty[i]
		if written == 0 {
			continue
		}
		var arrived uint8
		if rng != nil {
			arrived = written & uint8(rng.Uint32())
		}
		if arrived != 0 {
			c.toDisk(i, arrived)
		}
		for len(c.lies) <= i {
			c.lies = append(c.lies, 0)
		}
		c.lies[i] |= written &^ arrived
	}
	if rng != nil && rng.Uint32()&1 != 0 {
		c.disk.size = c.cache.size
	}
	c.clean()
}

// clean forgets what was dirty.
func (c *content) clean() {
	clear(c.dirty[c.dirtyFrom:c.dirtyTo])
	c.dirtyFrom, c.dirtyTo = 0, 0
	c.sizes = c.sizes[:0]
	clear(c.earlier)
}

func (c *content) lie(i int) uint8 {
	if i < len(c.lies) {
		return c.lies[i]
	}
	return 0
}

// read copies from off on what a reader gets: from the cache, or uncached, which
// differs only where the cache lies (the kernel writes dirty pages out before it
// reads past the cache). The end of the file is the cache's in both cases.
func (c *content) read(p []byte, off int64, uncached bool) (int, error) {
	done := 0
	for done < len(p) && off < c.cache.size {
		i, at := int(off/pageBytes), int(off%pageBytes)
		n := int(min(int64(len(p)-done), int64(pageBytes-at), c.cache.size-off))
		pg := c.cache.page(i)
		if lies := c.lie(i); uncached && lies != 0 {
			pg = pg.clone()
			for s := range pageSectors {
				if lies&(1<<s) != 0 {
					*pg.sectorOf(s) = *c.disk.page(i).sectorOf(s)
				}
			}
		}
		if pg == nil {
			clear(p[done : done+n])
		} else {
			copy(p[done:done+n], pg[at:])
		}
		done += n
		off += int64(n)
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// flipBit damages the disk, and with it the cache where that is clean and true.
func (c *content) flipBit(off int64, bit uint) {
	i, at := int(off/pageBytes), int(off%pageBytes)
	was := c.disk.page(i)
	damaged := was.clone()
	damaged[at] ^= 1 << bit
	c.disk.setPage(i, damaged)

	unclean := c.lie(i)
	if i < len(c.dirty) {
		unclean |= c.dirty[i]
	}
	switch pg := c.cache.page(i); {
	case pg == was:
		c.cache.setPage(i, damaged)
	case unclean&(1<<(at/sectorBytes)) == 0:
		pg[at] ^= 1 << bit
	}
}
