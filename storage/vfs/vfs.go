// Package vfs is the seam between storage and the file system: the few
// operations that a log needs, with what each promises after a power cut. The
// real one is [OS]; [Mem] is in memory and can be cloned as a power cut would
// leave it; [Fault] wraps either and injects failures. It knows nothing of frames.
package vfs

import "io"

// FS is a tree of files. Names are slash-separated paths. Errors satisfy
// errors.Is with fs.ErrNotExist, fs.ErrExist and the syscall.Errno of the cause
// (ENOSPC, EIO, EROFS, EMFILE). All methods may be called concurrently.
type FS interface {
	// Create makes a new, empty file for reading and writing; fs.ErrExist if
	// the name is taken. The name survives a crash only after SyncDir of its directory.
	Create(name string) (File, error)

	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)

	// OpenRead opens an existing file for reading only; writing to it is an error.
	OpenRead(name string) (File, error)

	// Rename moves a file or directory over newName atomically; it survives a crash only
	// after SyncDir of both directories.
	Rename(oldName, newName string) error

	// Remove removes a file or an empty directory; likewise durable after SyncDir.
	Remove(name string) error

	// MkdirAll makes a directory and its missing parents (0o700); the parents' entries are
	// durable after SyncDir of each parent.
	MkdirAll(name string) error

	// ReadDir lists a directory in the order of names.
	ReadDir(name string) ([]Entry, error)

	// SyncDir makes the entries of a directory durable: creations, renames and removals in it.
	SyncDir(name string) error

	// Lock takes an exclusive lock on a file, made if missing, and holds it
	// until the Closer is closed or the process ends. A lock held elsewhere is
	// an error that satisfies errors.Is(err, ErrLocked).
	Lock(name string) (io.Closer, error)

	// FreeBytes is the space that an unprivileged writer may still take on the
	// file system of name.
	FreeBytes(name string) (uint64, error)
}

// Entry is one name in a directory.
type Entry struct {
	Name string
	Dir  bool
	Size int64 // bytes; 0 for a directory
}

// File is an open file. Reads may run concurrently with everything; writes and
// syncs come from one goroutine at a time. The first error of a write or a sync
// is reported to this descriptor once: keep one descriptor from first write to last sync.
type File interface {
	io.ReaderAt
	io.Closer

	// WriteAt writes all of p at off, looping over short writes.
	WriteAt(p []byte, off int64) (int, error)

	// WritevAt writes all of bufs, one behind the other, beginning at off, with
	// as few system calls as the kernel allows (one for up to 1,024 buffers),
	// looping over short writes. It keeps none of bufs but may change the outer slice.
	WritevAt(bufs [][]byte, off int64) error

	// Datasync makes the file's data, and of its metadata what is needed to
	// read it, durable: one fdatasync. Never retry one that failed.
	Datasync() error

	// ReadAtUncached reads like ReadAt but from the device, past what the page
	// cache claims (O_DIRECT, or after dropping cached pages where that is not
	// to be had). Use it on bytes that no later sync has proved.
	ReadAtUncached(p []byte, off int64) (int, error)

	// DropCache advises that what is synced will not be read soon, so that its
	// memory may serve for something else. It changes nothing that can be read.
	DropCache()

	// Size is the file's length in bytes.
	Size() (int64, error)
}
