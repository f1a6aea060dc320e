package vfs

const (
	sectorBytes    = 512  // what a disk writes whole or not at all
	pageBytes      = 4096 // what the cache keeps and the disk's space is counted in
	pageSectors    = pageBytes / sectorBytes
	memFileBytes   = 1 << 34 // a longer file is EFBIG
	versionsMax    = 4       // earlier unsynced states kept of one sector, and of a size
	allPageSectors = 1<<pageSectors - 1
)

type (
	page   [pageBytes]byte
	sector [sectorBytes]byte
)

// sectorOf is the part of p, or of a hole, that is its sector s.
func (p *page) sectorOf(s int) *sector {
	if p == nil {
		return new(sector)
	}
	return (*sector)(p[s*sectorBytes:])
}

// clone is a page of its own with the bytes of p; p may be a hole.
func (p *page) clone() *page {
	c := new(page)
	if p != nil {
		*c = *p
	}
	return c
}

// image is one state of a file: its size and its pages.
type image struct {
	size  int64
	pages []*page // nil, and everything beyond, are holes and read as zeros
	held  int64   // pages that are not holes

	// shared: another image uses the same array of pages; copy it before a change.
	shared bool
}

// share is a second image that is equal to im; either may then change without
// the other. The pages themselves must not change any more.
func (im *image) share() image {
	im.shared = true
	return *im
}

func (im *image) page(i int) *page {
	if i < len(im.pages) {
		return im.pages[i]
	}
	return nil
}

func (im *image) setPage(i int, p *page) {
	if im.shared {
		im.pages = append(make([]*page, 0, max(len(im.pages), i+1)), im.pages...)
		im.shared = false
	}
	for len(im.pages) <= i {
		im.pages = append(im.pages, nil)
	}
	if im.pages[i] == nil {
		im.held++
	}
	im.pages[i] = p
}

// truncate takes away what lies beyond size; a page that changes is replaced.
func (im *image) truncate(size int64) {
	im.size = size
	keep := int((size + pageBytes - 1) / pageBytes)
	for i := keep; i < len(im.pages); i++ {
		if im.pages[i] != nil {
			im.held--
		}
	}
	im.pages = im.pages[:min(keep, len(im.pages))]
	if tail := int(size % pageBytes); tail != 0 && im.page(keep-1) != nil {
		p := im.pages[keep-1].clone()
		clear(p[tail:])
		im.setPage(keep-1, p)
	}
}
