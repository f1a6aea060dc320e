package vfs

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OS is the operating system's file system. Names are what the system calls
// get; relative ones start at the working directory. Directories are made with
// mode 0o700 and files with 0o600, for WAL holds everything a database holds.
// The zero value is ready.
//
// Every error that a system call caused is an *fs.PathError around its
// syscall.Errno. A descriptor is closed by Close alone, never by the garbage
// collector: a file that is dropped without Close stays open.
type OS struct{}

var _ FS = OS{}

func (OS) Create(name string) (File, error) {
	return openFile("create", name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
}

func (OS) Open(name string) (File, error) {
	return openFile("open", name, unix.O_RDWR)
}

func (OS) OpenRead(name string) (File, error) {
	return openFile("open", name, unix.O_RDONLY)
}

func (OS) Rename(oldName, newName string) error {
	// Not os.Rename: that one looks before it leaps, and answers with other errors.
	err := retry(func() error { return unix.Rename(oldName, newName) })
	return pathError("rename", oldName+" to "+newName, err)
}

func (OS) Remove(name string) error { return os.Remove(name) }

func (OS) MkdirAll(name string) error { return os.MkdirAll(name, 0o700) }

// ReadDir follows symbolic links, so that an operator may put a tenant on
// another disk. A name that goes away while the directory is read is left out.
func (OS) ReadDir(name string) ([]Entry, error) {
	listed, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(listed))
	for _, d := range listed {
		info, err := os.Stat(filepath.Join(name, d.Name()))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		e := Entry{Name: d.Name(), Dir: info.IsDir()}
		if !e.Dir {
			e.Size = info.Size()
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (OS) SyncDir(name string) error {
	fd, err := openRaw(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return pathError("syncdir", name, err)
	}
	// Once only: like a file's, a directory's failed sync is not to be repeated.
	err = unix.Fsync(fd)
	if errClose := unix.Close(fd); err == nil {
		err = errClose
	}
	return pathError("syncdir", name, err)
}

// Lock uses flock(2), which the kernel drops when the process ends in whatever
// way. A second Lock is refused within the same process, too. The lock is on
// the file, not on its name: never remove or rename a lock file.
func (OS) Lock(name string) (io.Closer, error) {
	fd, err := openRaw(name, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, pathError("lock", name, err)
	}
	err = retry(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil {
		return &osFile{name: name, fd: fd}, nil
	}
	_ = unix.Close(fd) // nothing was written
	if err == unix.EWOULDBLOCK {
		err = ErrLocked
	}
	return nil, pathError("lock", name, err)
}

// FreeBytes leaves out what the file system reserves for root, even when the
// caller is root.
func (OS) FreeBytes(name string) (uint64, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(name, &st) }); err != nil {
		return 0, pathError("statfs", name, err)
	}
	unit := st.Frsize // what f_bavail counts
	if unit <= 0 {
		unit = st.Bsize
	}
	return st.Bavail * uint64(unit), nil
}

// openFile opens a regular file; a directory is EISDIR in every mode, anything
// else (a device, a pipe) EINVAL.
func openFile(op, name string, flags int) (File, error) {
	fd, err := openRaw(name, flags)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	var st unix.Stat_t
	err = retry(func() error { return unix.Fstat(fd, &st) })
	if err == nil {
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			return &osFile{name: name, fd: fd}, nil
		case unix.S_IFDIR:
			err = unix.EISDIR
		default:
			err = unix.EINVAL
		}
	}
	_ = unix.Close(fd) // nothing was written
	return nil, pathError(op, name, err)
}

// openRaw opens name as a plain blocking descriptor. The runtime's poller has
// no use for regular files, and without it a read, write or sync is exactly the
// system call it looks like.
func openRaw(name string, flags int) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Open(name, flags|unix.O_CLOEXEC, 0o600)
		return err
	})
	return fd, err
}

// retry repeats f for as long as a signal interrupts it. Never wrap a sync in it.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// pathError gives err, if any, the operation and the name it belongs to.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
