package blockdev

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const loopControl = "/dev/loop-control"

// loop is a loop device that has a file attached. The kernel detaches the file
// when the last one closes the device, so none is left behind a process that is
// killed, and no ledger is needed.
type loop struct {
	path   string
	device *os.File
}

// attachTries bounds how often another process may be quicker to take a free device.
const attachTries = 100

// attach puts a loop device on top of a file.
func attach(file string) (*loop, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	backing, err := os.OpenFile(file, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	for range attachTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no free loop device: %w", err)
		}
		l := &loop{path: fmt.Sprintf("/dev/loop%d", n)}
		if l.device, err = os.OpenFile(l.path, os.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		err = unix.IoctlLoopConfigure(int(l.device.Fd()), &config)
		if err == nil {
			return l, nil
		}
		_ = l.device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("attach %s to %s: %w", file, l.path, err)
		}
	}
	return nil, errors.New("others take every free loop device first")
}

func (l *loop) detach() error { return l.device.Close() }

// tool finds a program that may be where only root's PATH looks.
func tool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, errHere := exec.LookPath(filepath.Join(dir, name)); errHere == nil {
			return path, nil
		}
	}
	return "", err
}

func findTools() error {
	_, err := tool("mkfs.ext4")
	return err
}

func run(name string, args ...string) error {
	path, err := tool(name)
	if err != nil {
		return err
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
