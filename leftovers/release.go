package leftovers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// release gives e back. It succeeds if there is no such thing any more.
func (e entry) release() error {
	switch e.kind {
	case Mount:
		return unmount(e.name)
	case Netns:
		if _, err := os.Stat("/run/netns/" + e.name); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return ip("netns", "delete", e.name)
	case Link:
		if _, err := os.Stat("/sys/class/net/" + e.name); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return ip("link", "delete", e.name)
	case Cgroup:
		return removeCgroup(e.name)
	case Dir:
		return os.RemoveAll(e.name)
	case Process:
		return kill(e.name)
	}
	return fmt.Errorf("an unknown kind of thing")
}

// busyWait is how long a mount or a group that was just let go may take to be free.
const busyWait = 3 * time.Second

// patiently repeats f while what it is about is busy.
func patiently(f func() error) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := f()
		if !errors.Is(err, unix.EBUSY) || time.Since(began) > busyWait {
			return err
		}
	}
}

func unmount(point string) error {
	err := patiently(func() error { return unix.Unmount(point, 0) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil // not mounted
	}
	if err != nil {
		err = unix.Unmount(point, unix.MNT_DETACH)
	}
	return err
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func removeCgroup(dir string) error {
	return patiently(func() error {
		if err := os.Remove(dir); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Identity names a running process so that another one which is given the same
// number later is not mistaken for it: its number and when it began.
func Identity(pid int) (string, error) {
	began, err := startTime(pid)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %s", pid, began), nil
}

// startTime is the 22nd field of /proc/PID/stat. The second holds any characters, in parentheses.
func startTime(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	_, rest, ok := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat cannot be understood", pid)
	}
	return fields[19], nil
}

func kill(identity string) error {
	number, began, _ := strings.Cut(identity, " ")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 1 {
		return fmt.Errorf("%q names no process", identity)
	}
	now, err := startTime(pid)
	if err != nil || now != began {
		return nil // it has ended
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
