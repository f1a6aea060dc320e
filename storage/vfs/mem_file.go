package vfs

import (
	"io/fs"
	"math/rand/v2"
	"syscall"
)

// memFile is an open file, or a held lock, of a Mem.
type memFile struct {
	mem      *Mem
	name     string // as it was opened; for error texts only
	node     *inode
	life     int // that of mem when it was opened
	writable bool
	lock     bool
	closed   bool
}

var _ File = (*memFile)(nil)

// enter takes the disk's lock; every nil error is paired with leave.
func (f *memFile) enter(op string) error {
	f.mem.mu.Lock()
	if !f.closed && f.life == f.mem.life {
		return nil
	}
	f.mem.mu.Unlock()
	return pathError(op, f.name, fs.ErrClosed)
}

func (f *memFile) leave() { f.mem.mu.Unlock() }

func (f *memFile) ReadAt(p []byte, off int64) (int, error)         { return f.read(p, off, false) }
func (f *memFile) ReadAtUncached(p []byte, off int64) (int, error) { return f.read(p, off, true) }

// DropCache does nothing: what Mem holds is memory.
func (f *memFile) DropCache() {}

func (f *memFile) read(p []byte, off int64, uncached bool) (int, error) {
	if err := f.enter("read"); err != nil {
		return 0, err
	}
	defer f.leave()
	if len(p) == 0 {
		return 0, nil
	}
	if off < 0 {
		return 0, pathError("read", f.name, syscall.EINVAL)
	}
	return f.node.data.read(p, off, uncached)
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.enter("write"); err != nil {
		return 0, err
	}
	defer f.leave()
	return f.write(p, off)
}

func (f *memFile) WritevAt(bufs [][]byte, off int64) error {
	if err := f.enter("write"); err != nil {
		return err
	}
	defer f.leave()
	for _, p := range bufs {
		n, err := f.write(p, off)
		if err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

func (f *memFile) write(p []byte, off int64) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case off < 0:
		return 0, pathError("write", f.name, syscall.EINVAL)
	case !f.writable:
		return 0, pathError("write", f.name, syscall.EBADF)
	case off > memFileBytes-int64(len(p)):
		return 0, pathError("write", f.name, syscall.EFBIG)
	}
	data := f.node.data
	done := 0
	for done < len(p) {
		if data.cache.page(int(off/pageBytes)) == nil {
			if f.mem.pagesUsed >= f.mem.pagesMax {
				return done, pathError("write", f.name, syscall.ENOSPC)
			}
			f.mem.pagesUsed++
		}
		n := min(len(p)-done, pageBytes-int(off%pageBytes))
		data.write(p[done:done+n], off)
		done += n
		off += int64(n)
	}
	return done, nil
}

func (f *memFile) Datasync() error {
	if err := f.enter("fdatasync"); err != nil {
		return err
	}
	defer f.leave()
	f.node.data.sync()
	return nil
}

// failDatasync loses what a Datasync would have made durable, and returns EIO.
func (f *memFile) failDatasync(rng *rand.Rand) error {
	if err := f.enter("fdatasync"); err != nil {
		return err
	}
	defer f.leave()
	f.node.data.failSync(rng)
	return pathError("fdatasync", f.name, syscall.EIO)
}

func (f *memFile) Size() (int64, error) {
	if err := f.enter("stat"); err != nil {
		return 0, err
	}
	defer f.leave()
	return f.node.data.cache.size, nil
}

func (f *memFile) Close() error {
	if err := f.enter("close"); err != nil {
		return err
	}
	defer f.leave()
	f.closed = true
	if f.lock {
		f.node.locked = false
	}
	f.node.handles--
	f.mem.releaseUnused(f.node)
	return nil
}
