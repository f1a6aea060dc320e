package logsink

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	// pipeBytes is the size that pipes are given where the kernel agrees: the
	// most that it allows an unprivileged process by default.
	pipeBytes = 1 << 20

	// pipeBytesMin is the smallest size worth asking for; pipes begin with 64 KiB.
	pipeBytesMin = 128 << 10
)

// GrowPipe asks the kernel for a pipe of 1 MiB, then for half of that and so
// on, and returns the size that the pipe has in the end; 0 if fd is no pipe. A
// pipe never becomes smaller: the other end may have asked for more.
func GrowPipe(fd int) int {
	size, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return 0
	}
	return grow(size, func(want int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, want) })
}

// grow asks for more than size, less each time it is refused.
func grow(size int, ask func(want int) (got int, err error)) int {
	for want := pipeBytes; want >= pipeBytesMin && want > size; want /= 2 {
		if got, err := ask(want); err == nil {
			return got
		}
	}
	return size
}

// Pipe makes a pipe for the log of a child process, as large as the kernel
// allows. The child gets w as its standard error; the parent closes its own w
// after the start, and gives r to Collect.
func Pipe() (r, w *os.File, err error) {
	r, w, err = os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	raw, err := w.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { GrowPipe(int(fd)) })
	}
	if err != nil {
		_ = r.Close()
		_ = w.Close()
		return nil, nil, err
	}
	return r, w, nil
}
