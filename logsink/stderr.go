package logsink

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const stderrFD = 2

// Stderr starts a sink that writes to the standard error. If that is a pipe
// the kernel is asked to make it as large as it will. limit is as for NewSink.
//
// A reader that goes away costs lines and not the process: the sink writes to
// a descriptor of its own, for which a broken pipe is an error and no signal.
func Stderr(limit int) (*Sink, error) {
	f, err := reopen(stderrFD)
	if err != nil {
		return nil, fmt.Errorf("opening the standard error for logging: %w", err)
	}
	return NewSink(f, limit), nil
}

// reopen returns another descriptor for fd. A pipe is opened anew, so that it
// can be written without blocking, and with a deadline, whoever else has it
// open; where that is refused, and for everything but a pipe, it is a duplicate.
func reopen(fd int) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFIFO {
		GrowPipe(fd)
		name := fmt.Sprintf("/proc/self/fd/%d", fd)
		if again, err := unix.Open(name, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			return os.NewFile(uintptr(again), name), nil
		}
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(dup), "stderr"), nil
}
