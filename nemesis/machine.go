package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/blockdev"
	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/leftovers"
)

// machine is one acceptor and what it stands on.
type machine struct {
	w    *world
	at   site
	node *fleet.Node
	data string // its data directory

	disk *blockdev.Disk // nil: a plain directory
	ext4 *blockdev.Ext4

	clockDays int    // by how much its next life's clock differs
	group     string // its control group, "" if it has none
	paused    string // its process in the ledger while it cannot leave by itself

	// In this round:
	damaged bool // its copy was damaged or taken away: nothing is expected of it
	down    bool // it was ended by us and not started again
}

// diskBytes is the size of a machine's disk. Only what is written takes memory.
const diskBytes = 512 << 20

// newMachine gives acceptor s its data directory, on a disk of its own if that can be.
func newMachine(w *world, s site) (*machine, error) {
	m := &machine{w: w, at: s, data: filepath.Join(w.dir, "node-"+strconv.Itoa(int(s)))}
	if err := os.Mkdir(m.data, 0o700); err != nil {
		return nil, err
	}
	if w.noDisks != nil {
		return m, nil
	}
	raw := filepath.Join(w.dir, "raw-"+strconv.Itoa(int(s)))
	if err := os.Mkdir(raw, 0o700); err != nil {
		return nil, err
	}
	var err error
	if m.disk, err = blockdev.Start(w.ledger, raw, diskBytes); err != nil {
		return nil, err
	}
	if err := blockdev.MakeExt4(m.disk.Device()); err != nil {
		return m, err
	}
	m.ext4, err = blockdev.MountExt4(w.ledger, m.disk.Device(), m.data)
	return m, err
}

func (m *machine) close() error {
	m.kill()
	m.ungroup()
	var err error
	if m.ext4 != nil {
		err = m.ext4.Unmount()
	}
	if m.disk != nil {
		err = errors.Join(err, m.disk.Close())
	}
	return err
}

// enter is where its process starts: in its network namespace and, if its
// clock is to differ, in a time namespace.
func (m *machine) enter(start func() error) error {
	if m.clockDays == 0 {
		return m.w.net.enter(m.at, start)
	}
	return onOwnThread(func() error {
		return m.w.net.enterHere(m.at, func() error {
			if err := unix.Unshare(unix.CLONE_NEWTIME); err != nil {
				return fmt.Errorf("a clock of its own: %w", err)
			}
			offset := fmt.Sprintf("monotonic %d 0\nboottime %d 0\n", m.clockDays*86400, m.clockDays*86400)
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/timens_offsets", unix.Gettid()), []byte(offset), 0); err != nil {
				return fmt.Errorf("a clock of its own: %w", err)
			}
			return start()
		})
	})
}

// kill ends the process as kill -9 does.
func (m *machine) kill() {
	m.down = true
	if m.node != nil {
		m.node.Kill()
	}
	m.running()
}

// start starts the process again.
func (m *machine) start(ctx context.Context) error {
	if err := m.node.Start(ctx); err != nil {
		return err
	}
	m.down = false
	return nil
}

// pause stops the process where it is. Then it cannot see that its parent is gone, so it is listed.
func (m *machine) pause() error {
	id, err := leftovers.Identity(m.node.PID())
	if err != nil {
		return err
	}
	if err := m.w.ledger.Take(leftovers.Process, id); err != nil {
		return err
	}
	m.paused = id
	return m.node.Pause()
}

func (m *machine) resume() error {
	err := m.node.Resume()
	m.running()
	return err
}

// running takes it off the list again.
func (m *machine) running() {
	if m.paused != "" {
		_ = m.w.ledger.Forget(leftovers.Process, m.paused)
		m.paused = ""
	}
}

// remount gives the acceptor what a reboot would: a file system that was
// mounted afresh, without what only the cache held.
func (m *machine) remount(ctx context.Context) error {
	m.kill()
	if err := m.ext4.Unmount(); err != nil {
		return err
	}
	var err error
	if m.ext4, err = blockdev.MountExt4(m.w.ledger, m.disk.Device(), m.data); err != nil {
		return err
	}
	return m.start(ctx)
}

// memoryGroups is where control groups that limit memory are made, by version.
var memoryGroups = []struct{ dir, limit string }{
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
	{"/sys/fs/cgroup", "memory.max"},
}

// limitMemory moves the process into a control group of its own.
func (m *machine) limitMemory(bytes int) error {
	why := errors.New("no control groups that limit memory")
	for _, g := range memoryGroups {
		dir := filepath.Join(g.dir, fmt.Sprintf("holdfast-nemesis-%d-%d", os.Getpid(), m.at))
		if _, err := os.Stat(filepath.Join(g.dir, "cgroup.procs")); err != nil {
			continue
		}
		if err := m.w.ledger.Take(leftovers.Cgroup, dir); err != nil {
			return err
		}
		if why = os.Mkdir(dir, 0o755); why != nil {
			continue
		}
		m.group = dir
		why = os.WriteFile(filepath.Join(dir, g.limit), []byte(strconv.Itoa(bytes)), 0)
		if why == nil {
			why = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(m.node.PID())), 0)
		}
		if why == nil {
			return nil
		}
		m.ungroup()
	}
	return why
}

// ungroup lifts the limit.
func (m *machine) ungroup() {
	if m.group == "" {
		return
	}
	if m.node != nil && m.node.Running() {
		_ = os.WriteFile(filepath.Join(filepath.Dir(m.group), "cgroup.procs"), []byte(strconv.Itoa(m.node.PID())), 0)
	}
	_ = m.w.ledger.Return(leftovers.Cgroup, m.group) // what stays is listed
	m.group = ""
}

// residentBytes is the memory that the process uses.
func (m *machine) residentBytes() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", m.node.PID()))
	if err != nil {
		return 0, err
	}
	var size, resident int
	_, err = fmt.Sscan(string(text), &size, &resident)
	return resident * os.Getpagesize(), err
}

// descriptors counts those that the process has open.
func (m *machine) descriptors() (int, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.node.PID()))
	return len(list), err
}

// limitDescriptors lets the process open no more than it has and a few.
func (m *machine) limitDescriptors(n uint64) error {
	var old unix.Rlimit
	if err := unix.Prlimit(m.node.PID(), unix.RLIMIT_NOFILE, nil, &old); err != nil {
		return err
	}
	return unix.Prlimit(m.node.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(n, old.Max), Max: old.Max}, nil)
}
