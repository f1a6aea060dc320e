package vfs

import (
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
)

// faultFile is an open file, or a held lock, of a Fault.
type faultFile struct {
	fault  *Fault
	inner  File      // nil for a lock
	closer io.Closer // inner, or the lock
	name   string    // the present one; guarded by fault.mu
}

var _ File = (*faultFile)(nil)

func (f *faultFile) begin(op Op) (strike, error) {
	f.fault.mu.Lock()
	return f.fault.beginLocked(op, f.name, "")
}

func (f *faultFile) ReadAt(p []byte, off int64) (int, error) {
	return f.read(OpReadAt, f.inner.ReadAt, p, off)
}

func (f *faultFile) ReadAtUncached(p []byte, off int64) (int, error) {
	return f.read(OpReadAtUncached, f.inner.ReadAtUncached, p, off)
}

// DropCache is no operation that can fail.
func (f *faultFile) DropCache() { f.inner.DropCache() }

func (f *faultFile) read(op Op, read func([]byte, int64) (int, error), p []byte, off int64) (int, error) {
	s, err := f.begin(op)
	if err != nil {
		return 0, err
	}
	n, err := read(p, off)
	if _, ok := s.effect.(FlipRead); ok {
		flipOneBit(p[:n], s.rng)
	}
	return n, err
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	s, err := f.begin(OpWriteAt)
	if err != nil {
		return 0, err
	}
	if s.effect == nil {
		return f.inner.WriteAt(p, off)
	}
	return f.writeFaulty(s, p, off)
}

func (f *faultFile) WritevAt(bufs [][]byte, off int64) error {
	s, err := f.begin(OpWritevAt)
	if err != nil {
		return err
	}
	if s.effect == nil {
		return f.inner.WritevAt(bufs, off)
	}
	_, err = f.writeFaulty(s, slices.Concat(bufs...), off)
	return err
}

func (f *faultFile) writeFaulty(s strike, p []byte, off int64) (int, error) {
	switch e := s.effect.(type) {
	case ShortWrite:
		n := min(e.Bytes, len(p))
		if n < 0 {
			n = s.rng.IntN(len(p) + 1)
		}
		n, err := f.inner.WriteAt(p[:n], off)
		if err == nil {
			err = pathError("write", f.currentName(), e.Err)
		}
		return n, err
	case FlipWrite:
		p = slices.Clone(p)
		flipOneBit(p, s.rng)
	case DropWrite:
		return len(p), nil
	case MisdirectWrite:
		if off += e.By; off < 0 {
			return len(p), nil
		}
	}
	return f.inner.WriteAt(p, off)
}

// flipOneBit flips the first bit, or with rng any, of p, if it has one.
func flipOneBit(p []byte, rng *rand.Rand) {
	switch {
	case len(p) == 0:
	case rng == nil:
		p[0] ^= 1
	default:
		p[rng.IntN(len(p))] ^= 1 << rng.IntN(8)
	}
}

func (f *faultFile) Datasync() error {
	s, err := f.begin(OpDatasync)
	if err != nil {
		return err
	}
	if _, ok := s.effect.(LoseSync); ok {
		return f.failDatasync(s.rng)
	}
	return f.inner.Datasync()
}

// failDatasync also makes one Fault in front of another work.
func (f *faultFile) failDatasync(rng *rand.Rand) error {
	if inner, ok := f.inner.(interface{ failDatasync(*rand.Rand) error }); ok {
		return inner.failDatasync(rng)
	}
	return pathError("fdatasync", f.currentName(), syscall.EIO)
}

func (f *faultFile) Size() (int64, error) {
	if _, err := f.begin(OpSize); err != nil {
		return 0, err
	}
	return f.inner.Size()
}

// Close closes the file below in any case: it does not leak because the
// injected process has crashed.
func (f *faultFile) Close() error {
	_, err := f.begin(OpClose)
	f.fault.untrack(f)
	if errClose := f.close(); err == nil {
		err = errClose
	}
	return err
}

func (f *faultFile) close() error { return f.closer.Close() }

func (f *faultFile) currentName() string {
	f.fault.mu.Lock()
	defer f.fault.mu.Unlock()
	return f.name
}
