package vfs

import (
	"io"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// osFile is a File over a plain descriptor: one field per fact, one system call
// per operation.
type osFile struct {
	name string // as it was opened; for error texts only

	// mu is read-held while fd is in use, so that Close waits for calls in
	// flight: a descriptor closed under a reader may be another file by the
	// time the reader gets to it.
	mu sync.RWMutex
	fd int // -1 once closed

	// iovecs is the scratch of WritevAt. Writes come from one goroutine at a
	// time, so it needs no lock of its own; kept, it makes writes free of
	// allocations.
	iovecs []unix.Iovec
}

var _ File = (*osFile)(nil)

// enter begins a use of the descriptor; every nil error is paired with leave.
func (f *osFile) enter(op string) error {
	f.mu.RLock()
	if f.fd >= 0 {
		return nil
	}
	f.mu.RUnlock()
	return pathError(op, f.name, fs.ErrClosed)
}

func (f *osFile) leave() { f.mu.RUnlock() }

func (f *osFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.enter("read"); err != nil {
		return 0, err
	}
	defer f.leave()
	return f.readFull(p, off)
}

// readFull reads through the page cache until p is full or the file ends.
func (f *osFile) readFull(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Pread(f.fd, p[done:], off+int64(done))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, pathError("read", f.name, err)
		case n == 0:
			return done, io.EOF
		default:
			done += n
		}
	}
	return done, nil
}

func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.enter("write"); err != nil {
		return 0, err
	}
	defer f.leave()
	done := 0
	for done < len(p) {
		n, err := unix.Pwrite(f.fd, p[done:], off+int64(done))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, pathError("write", f.name, err)
		case n == 0: // would repeat for ever
			return done, pathError("write", f.name, io.ErrShortWrite)
		default:
			done += n
		}
	}
	return done, nil
}

// Datasync does not repeat even an interrupted fdatasync: the kernel may have
// taken the error off the file with the first call, and a second one that
// succeeds would prove nothing.
func (f *osFile) Datasync() error {
	if err := f.enter("fdatasync"); err != nil {
		return err
	}
	defer f.leave()
	return pathError("fdatasync", f.name, unix.Fdatasync(f.fd))
}

func (f *osFile) Size() (int64, error) {
	if err := f.enter("stat"); err != nil {
		return 0, err
	}
	defer f.leave()
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(f.fd, &st) }); err != nil {
		return 0, pathError("stat", f.name, err)
	}
	return st.Size, nil
}

// Close waits for calls in flight, so it may take as long as the slowest of
// them. Closing again is an error that satisfies errors.Is(err, fs.ErrClosed)
// and does nothing.
func (f *osFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd < 0 {
		return pathError("close", f.name, fs.ErrClosed)
	}
	// Linux frees the descriptor whatever close returns, so never try again.
	err := unix.Close(f.fd)
	f.fd = -1
	f.iovecs = nil
	return pathError("close", f.name, err)
}
