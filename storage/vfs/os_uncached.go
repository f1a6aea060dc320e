package vfs

import (
	"io"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// directAlign suits every device with logical blocks of up to 4 KiB, in
	// memory and on disk. A device that wants more answers EINVAL and is read
	// by way of dropped cache pages.
	directAlign = 4096

	// directBytesMax bounds the buffer of one uncached read, whatever is asked for.
	directBytesMax = 1 << 20
)

// ReadAtUncached opens a second, direct descriptor for the call and closes it
// again: it is for recovery, which is rare, and a spare descriptor per segment
// would not be. The file's clean pages are dropped from the cache first in any
// case, because some file systems accept O_DIRECT and then read through the cache
// all the same; so cached reads after it mostly agree with it. Sync the file before:
// pages that are dirty cannot be dropped.
func (f *osFile) ReadAtUncached(p []byte, off int64) (int, error) {
	if err := f.enter("read"); err != nil {
		return 0, err
	}
	defer f.leave()
	if off < 0 {
		return 0, pathError("read", f.name, unix.EINVAL)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if err := f.dropCache(); err != nil {
		return 0, pathError("fadvise", f.name, err)
	}
	fd, err := f.openDirect()
	if err == unix.EINVAL {
		return f.readFull(p, off)
	}
	if err != nil {
		return 0, pathError("open direct", f.name, err)
	}
	n, err := readDirect(fd, p, off)
	_ = unix.Close(fd) // nothing was written
	switch err {
	case nil, io.EOF:
		return n, err
	case unix.EINVAL:
		return f.readFull(p, off)
	default:
		return n, pathError("read direct", f.name, err)
	}
}

// DropCache is advice: whether it was taken is nobody's concern.
func (f *osFile) DropCache() {
	if f.enter("fadvise") == nil {
		_ = f.dropCache()
		f.leave()
	}
}

// dropCache asks the kernel to forget its clean pages of the file. Of the whole
// file: the cache holds pages in groups of up to megabytes, and of a group that
// is only partly in the range asked for it drops nothing (seen on ext4 with
// Linux 6.18: a page of a file written with one 64 KiB write stayed, lie and
// all, until the range was those 64 KiB).
func (f *osFile) dropCache() error {
	return retry(func() error { return unix.Fadvise(f.fd, 0, 0, unix.FADV_DONTNEED) })
}

// openDirect opens the very file of f once more, by way of /proc because its
// name may have changed or gone since. Without /proc it goes by the name and
// makes sure of the file. EINVAL: the file system has no O_DIRECT.
func (f *osFile) openDirect() (int, error) {
	fd, err := openRaw("/proc/self/fd/"+strconv.Itoa(f.fd), unix.O_RDONLY|unix.O_DIRECT)
	if err != unix.ENOENT {
		return fd, err
	}
	if fd, err = openRaw(f.name, unix.O_RDONLY|unix.O_DIRECT); err != nil {
		return -1, err
	}
	var mine, other unix.Stat_t
	err = retry(func() error { return unix.Fstat(f.fd, &mine) })
	if err == nil {
		err = retry(func() error { return unix.Fstat(fd, &other) })
	}
	if err == nil && (mine.Dev != other.Dev || mine.Ino != other.Ino) {
		err = unix.ESTALE
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was written
		return -1, err
	}
	return fd, nil
}

// readDirect fills p from off with aligned reads through a buffer of its own.
func readDirect(fd int, p []byte, off int64) (int, error) {
	span := off%directAlign + int64(len(p)) + directAlign - 1
	buf := alignedBuffer(int(min(span/directAlign*directAlign, directBytesMax)))
	done := 0
	for done < len(p) {
		at := off + int64(done)
		lead := int(at % directAlign)
		want := (lead + len(p) - done + directAlign - 1) / directAlign * directAlign
		n, err := unix.Pread(fd, buf[:min(want, len(buf))], at-int64(lead))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		if n <= lead {
			return done, io.EOF
		}
		done += copy(p[done:], buf[lead:n])
	}
	return done, nil
}

// alignedBuffer is n bytes, a multiple of directAlign, that begin at an address
// divisible by it. The garbage collector does not move it.
func alignedBuffer(n int) []byte {
	b := make([]byte, n+directAlign)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (directAlign - 1)
	return b[skip : skip+n : skip+n]
}
