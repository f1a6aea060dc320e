package vfs

import (
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// iovecsMax is the kernel's UIO_MAXIOV: pwritev refuses more buffers than this.
const iovecsMax = 1024

// WritevAt leaves bufs as it is. Beyond 1,024 buffers, or 2 GiB less a page
// (more the kernel does not take in one call), it takes further system calls.
func (f *osFile) WritevAt(bufs [][]byte, off int64) error {
	if err := f.enter("write"); err != nil {
		return err
	}
	defer f.leave()
	defer f.forget()

	next, skip := 0, 0 // the first byte not yet written is bufs[next][skip]
	for {
		f.gather(bufs[next:], skip)
		if len(f.iovecs) == 0 {
			return nil
		}
		n, err := pwritev(f.fd, f.iovecs, off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return pathError("write", f.name, err)
		}
		if n == 0 { // would repeat for ever
			return pathError("write", f.name, io.ErrShortWrite)
		}
		off += int64(n)
		skip += n
		for next < len(bufs) && skip >= len(bufs[next]) {
			skip -= len(bufs[next])
			next++
		}
	}
}

// gather points iovecs at bufs without the first skip bytes, as much of it as
// one call takes.
func (f *osFile) gather(bufs [][]byte, skip int) {
	f.iovecs = f.iovecs[:0]
	for _, b := range bufs {
		b, skip = b[skip:], 0
		if len(b) == 0 {
			continue
		}
		if len(f.iovecs) == iovecsMax {
			return
		}
		v := unix.Iovec{Base: unsafe.SliceData(b)}
		v.SetLen(len(b))
		f.iovecs = append(f.iovecs, v)
	}
}

// forget drops the references to the caller's buffers, keeping the space.
func (f *osFile) forget() {
	clear(f.iovecs[:cap(f.iovecs)])
	f.iovecs = f.iovecs[:0]
}

// pwritev is the system call itself. unix.Pwritev would build its own vector,
// and allocate it, in every call.
func pwritev(fd int, iovecs []unix.Iovec, off int64) (int, error) {
	// The offset comes in two words; a 64-bit kernel takes all of it from the first.
	n, _, errno := unix.Syscall6(unix.SYS_PWRITEV,
		uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(iovecs))), uintptr(len(iovecs)),
		uintptr(off), uintptr(uint64(off)>>32), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
