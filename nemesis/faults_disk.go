package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/blockdev"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func slowDisk(ctx context.Context, w *world, m *machine) error {
	m.disk.SetFault(blockdev.Fault{FlushDelay: time.Duration(20+w.rng.IntN(400)) * time.Millisecond})
	w.hold(ctx)
	m.disk.SetFault(blockdev.Fault{})
	return nil
}

// noSpace fills the disk. The acceptor must refuse what does not fit, not be
// poisoned by it, and go on by itself when there is space again.
func noSpace(ctx context.Context, w *world, m *machine) error {
	name := filepath.Join(m.data, "Ballast") // no tenant's name
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var at int64
	for step := int64(64 << 20); step >= 4096; {
		if err := unix.Fallocate(int(f.Fd()), 0, at, step); err == nil {
			at += step
		} else if errors.Is(err, unix.ENOSPC) {
			step /= 2
		} else {
			return errors.Join(err, os.Remove(name))
		}
	}
	// What was prepared ahead is used up first; then it stands still, behind the others.
	var stands wal.LSN
	var since time.Time
	behind := eventually(ctx, fullWait, func() bool {
		flush, longest := w.flushes(ctx, m)
		if flush != stands || flush == 0 {
			stands, since = flush, time.Now()
		}
		return m.damaged || flush < longest && time.Since(since) > fullStands
	})
	w.hold(ctx)
	if h, why := w.health(ctx, m); h == wal.Poisoned {
		err = fmt.Errorf("a full disk has poisoned it: %s", why)
	} else if !behind && ctx.Err() == nil {
		err = fmt.Errorf("its disk was full for %v and it kept up: nothing was tried", fullWait)
	}
	return errors.Join(err, os.Remove(name))
}

const (
	fullWait   = 15 * time.Second
	fullStands = time.Second
)

// flushes is where m's log ends, 0 if that is not known, and where the longest does. It may
// be one of only two that are left, so what is committed does not tell.
func (w *world) flushes(ctx context.Context, m *machine) (flush, longest wal.LSN) {
	for _, a := range w.look(ctx) {
		if a.Err != nil {
			continue
		}
		longest = max(longest, a.Value.Flush)
		if a.Value.Node == wal.NodeID(m.at) {
			flush = a.Value.Flush
		}
	}
	return flush, longest
}

// diskError makes flushes or writes fail. Afterwards the acceptor must come
// back by itself or, if the file system has given up, when it is mounted again.
func diskError(ctx context.Context, w *world, m *machine) error {
	f := blockdev.Fault{FlushError: syscall.EIO}
	if w.rng.IntN(2) == 0 {
		f = blockdev.Fault{WriteError: syscall.EIO}
	}
	m.disk.SetFault(f)
	w.hold(ctx)
	m.disk.SetFault(blockdev.Fault{})
	var st unix.Statfs_t
	if err := unix.Statfs(m.data, &st); err != nil {
		return err
	}
	if w.rng.IntN(2) == 0 || st.Flags&unix.ST_RDONLY != 0 {
		return m.remount(ctx)
	}
	if m.damaged || eventually(ctx, healWait, func() bool { h, _ := w.health(ctx, m); return h == wal.Healthy }) || ctx.Err() != nil {
		return nil
	}
	probe, err := os.Create(filepath.Join(m.data, "Probe"))
	if err == nil {
		err = errors.Join(probe.Sync(), probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return m.remount(ctx) // the journal was given up meanwhile
	}
	h, why := w.health(ctx, m)
	return fmt.Errorf("its disk works again since %v, but its copy is %v: %s", healWait, h, why)
}

// healWait is how long a poisoned copy may take to be opened again by itself.
const healWait = 10 * time.Second

// health is what m says of its copy, and why; Lost if it says nothing.
func (w *world) health(ctx context.Context, m *machine) (wal.Health, string) {
	for i, a := range w.look(ctx) {
		if a.Err == nil && a.Value.Node == wal.NodeID(m.at) {
			return a.Value.Health, a.Value.HealthReason
		}
		if w.machines[i] == m {
			return wal.Lost, fmt.Sprint(a.Err)
		}
	}
	return wal.Lost, "it is not among those that were asked"
}

// bitFlip changes single bits of a copy that is not in use.
func bitFlip(ctx context.Context, w *world, m *machine) error {
	m.kill()
	m.damaged = true
	names, err := filepath.Glob(filepath.Join(m.data, w.timeline.Tenant, w.timeline.Timeline, "*.seg"))
	if err != nil || len(names) == 0 {
		return errors.Join(fmt.Errorf("%d segments to flip bits in", len(names)), err)
	}
	for range 1 + w.rng.IntN(8) {
		if err := w.flip(names[w.rng.IntN(len(names))]); err != nil {
			return err
		}
	}
	return m.start(ctx)
}

// flip changes one bit where a segment is not all zeros.
func (w *world) flip(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	used := len(b)
	for used > 0 && b[used-1] == 0 {
		used--
	}
	if used == 0 {
		return nil
	}
	at := w.rng.IntN(used)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{b[at] ^ 1<<w.rng.IntN(8)}, int64(at))
	return errors.Join(err, f.Sync(), f.Close())
}

// wipe empties the data directory: a disk was swapped.
func wipe(ctx context.Context, w *world, m *machine) error {
	m.kill()
	m.damaged = true
	entries, err := os.ReadDir(m.data)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lost+found" {
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(m.data, e.Name())))
	}
	return errors.Join(err, m.start(ctx))
}
