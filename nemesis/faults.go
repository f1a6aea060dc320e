package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/blockdev"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// fault is one kind of harm. It injects, waits, and heals before it returns.
type fault struct {
	name string

	// elects: while it lasts, or because of it, somebody new must win.
	elects bool

	// ruins: an acceptor's copy is not to be relied on afterwards. One a round.
	ruins bool

	// missing says why it cannot be done here; nil if it always can.
	missing func(w *world) error

	do func(ctx context.Context, w *world) error
}

// faults is every kind that there is.
var faults = []fault{
	{name: "kill", do: onOne(kill)},
	{name: "kill-all", do: killAll},
	{name: "pause", do: onOne(pause)},
	{name: "cut-both-ways", do: onOne(cutBothWays)},
	{name: "cut-replies", do: onOne(cutReplies)},
	{name: "cut-requests", do: onOne(cutRequests)},
	{name: "delay", do: onOne(delay)},
	{name: "slow-disk", missing: needsDisk, do: onOne(slowDisk)},
	{name: "no-space", missing: needsDisk, do: onOne(noSpace)},
	{name: "disk-error", missing: needsDisk, do: onOne(diskError)},
	{name: "clock", missing: needsTimeNamespace, do: onOne(clock)},
	{name: "few-descriptors", do: onOne(fewDescriptors)},
	{name: "memory-limit", missing: needsMemoryGroup, do: onOne(memoryLimit)},
	{name: "bit-flip", ruins: true, do: onOne(bitFlip)},
	{name: "wipe", ruins: true, do: onOne(wipe)},
	{name: "proposer-kill", elects: true, do: proposerKill},
	{name: "proposer-pause", elects: true, do: proposerPause},
	{name: "proposer-cut", elects: true, do: proposerCut},
	{name: "proposer-deaf", elects: true, do: proposerDeaf},
	{name: "rivals", elects: true, do: rivals},
}

// FaultNames lists all kinds.
func FaultNames() []string {
	var names []string
	for _, f := range faults {
		names = append(names, f.name)
	}
	return names
}

func needsDisk(w *world) error { return w.noDisks }

func needsTimeNamespace(*world) error {
	if _, err := os.Stat("/proc/self/timens_offsets"); err != nil {
		return fmt.Errorf("no time namespaces: %w", err)
	}
	if os.Geteuid() != 0 {
		return errors.New("time namespaces are for root only")
	}
	return nil
}

func needsMemoryGroup(*world) error {
	if os.Geteuid() != 0 {
		return errors.New("control groups are for root only")
	}
	for _, g := range memoryGroups {
		if _, err := os.Stat(filepath.Join(g.dir, g.limit)); err == nil || g.limit == "memory.max" && exists(g.dir+"/cgroup.controllers") {
			return nil
		}
	}
	return errors.New("no control groups that limit memory")
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

// onOne picks the machine that suffers.
func onOne(do func(context.Context, *world, *machine) error) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		m := w.machines[w.rng.IntN(len(w.machines))]
		w.suffering = m
		err := do(ctx, w, m)
		w.suffering = nil
		if err != nil {
			return fmt.Errorf("node %d: %w", m.at, err)
		}
		return nil
	}
}

// hold waits for as long as a fault lasts: between one and two seconds. One time
// in three another acceptor than the one that suffers is killed meanwhile and
// started again: misfortunes meet.
func (w *world) hold(ctx context.Context) {
	wait := func() {
		select {
		case <-time.After(time.Duration(500+w.rng.IntN(500)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	wait()
	x := w.machines[w.rng.IntN(len(w.machines))]
	if w.rng.IntN(3) == 0 && x != w.suffering && !x.down {
		x.kill()
		w.kills++
		if err := x.start(ctx); err != nil && w.broken == nil {
			w.broken = fmt.Errorf("node %d, killed meanwhile: %w", x.at, err)
		}
	}
	wait()
}

func kill(ctx context.Context, w *world, m *machine) error {
	m.kill()
	w.hold(ctx)
	return m.start(ctx)
}

func killAll(ctx context.Context, w *world) error {
	for _, m := range w.machines {
		m.kill()
	}
	var err error
	for _, m := range w.machines {
		err = errors.Join(err, m.start(ctx))
	}
	return err
}

func pause(ctx context.Context, w *world, m *machine) error {
	if err := m.pause(); err != nil {
		return err
	}
	w.hold(ctx)
	return m.resume()
}

// cutting cuts s off for a while: what it sends, what is sent to it, or both.
func (w *world) cutting(ctx context.Context, s site, outward, inward bool) error {
	var err error
	for _, on := range []bool{true, false} {
		for _, x := range peersOf(s) {
			if outward {
				err = errors.Join(err, w.cut(s, x, on))
			}
			if inward {
				err = errors.Join(err, w.cut(x, s, on))
			}
		}
		if on {
			w.hold(ctx)
		}
	}
	return err
}

func cutBothWays(ctx context.Context, w *world, m *machine) error {
	return w.cutting(ctx, m.at, true, true)
}
func cutReplies(ctx context.Context, w *world, m *machine) error {
	return w.cutting(ctx, m.at, true, false)
}
func cutRequests(ctx context.Context, w *world, m *machine) error {
	return w.cutting(ctx, m.at, false, true)
}

func delay(ctx context.Context, w *world, m *machine) error {
	d := time.Duration(5+w.rng.IntN(150)) * time.Millisecond
	for _, x := range peersOf(m.at) {
		w.links.slow(x, m.at, d)
		w.links.slow(m.at, x, d/2)
	}
	w.hold(ctx)
	for _, x := range peersOf(m.at) {
		w.links.slow(x, m.at, 0)
		w.links.slow(m.at, x, 0)
	}
	return nil
}

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

// clock gives the acceptor's next life another monotonic clock, days apart from
// the others'. The wall clock belongs to the whole machine and is left alone;
// no rule looks at either.
func clock(ctx context.Context, w *world, m *machine) error {
	m.kill()
	m.clockDays += 1 + w.rng.IntN(100)
	return m.start(ctx)
}

func fewDescriptors(ctx context.Context, w *world, m *machine) error {
	n, err := m.descriptors()
	if err != nil {
		return err
	}
	if err := m.limitDescriptors(uint64(n + w.rng.IntN(3))); err != nil {
		return err
	}
	for _, p := range w.proxies { // new connections, which need new ones
		if p.at == m.at {
			p.reset()
		}
	}
	w.hold(ctx)
	return m.limitDescriptors(1 << 20)
}

// memoryLimit leaves the process hardly more than it has. If the kernel ends
// it for that, it is started again.
func memoryLimit(ctx context.Context, w *world, m *machine) error {
	n, err := m.residentBytes()
	if err != nil {
		return err
	}
	if err := m.limitMemory(n + 2<<20 + w.rng.IntN(8<<20)); err != nil {
		return err
	}
	w.hold(ctx)
	m.ungroup()
	if m.node.Running() {
		return nil
	}
	return m.start(ctx)
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

// primary is the client that is meant to write.
func (w *world) primary() (*client, error) {
	if len(w.clients) != 1 {
		return nil, fmt.Errorf("%d clients run; one should", len(w.clients))
	}
	return w.clients[0], nil
}

// elsewhere is the other place for a proposer.
func elsewhere(s site) site {
	if s == proposerA {
		return proposerB
	}
	return proposerA
}

func proposerKill(ctx context.Context, w *world) error {
	c, err := w.primary()
	if err != nil {
		return err
	}
	c.kill()
	_, err = w.startClient(elsewhere(c.at))
	return err
}

// takeover lets another proposer win while the first is hindered; then the first
// is let go, both fight, and one of them leaves.
func (w *world) takeover(ctx context.Context, hinder, release func(*client) error) error {
	first, err := w.primary()
	if err != nil {
		return err
	}
	if err := hinder(first); err != nil {
		return err
	}
	second, err := w.startClient(elsewhere(first.at))
	if err == nil {
		w.hold(ctx)
	}
	if err := errors.Join(err, release(first)); err != nil {
		return err
	}
	w.hold(ctx)
	if w.rng.IntN(2) == 0 {
		first, second = second, first
	}
	first.leave()
	_ = second // goes on
	return nil
}

func proposerPause(ctx context.Context, w *world) error {
	return w.takeover(ctx,
		func(c *client) error { c.signal(syscall.SIGSTOP); return nil },
		func(c *client) error { c.signal(syscall.SIGCONT); return nil })
}

func proposerCut(ctx context.Context, w *world) error {
	return w.takeover(ctx,
		func(c *client) error { return w.cutOff(c.at, true, true, true) },
		func(c *client) error { return w.cutOff(c.at, true, true, false) })
}

// proposerDeaf: what it sends arrives, what is answered does not.
func proposerDeaf(ctx context.Context, w *world) error {
	return w.takeover(ctx,
		func(c *client) error { return w.cutOff(c.at, false, true, true) },
		func(c *client) error { return w.cutOff(c.at, false, true, false) })
}

func rivals(ctx context.Context, w *world) error {
	nothing := func(*client) error { return nil }
	return w.takeover(ctx, nothing, nothing)
}

func (w *world) cutOff(s site, outward, inward, on bool) error {
	var err error
	for _, x := range peersOf(s) {
		if outward {
			err = errors.Join(err, w.cut(s, x, on))
		}
		if inward {
			err = errors.Join(err, w.cut(x, s, on))
		}
	}
	return err
}

// pickFaults returns the kinds that were asked for and can be done here, and why others cannot.
func (w *world) pickFaults() (possible []fault, skipped map[string]string, err error) {
	skipped = map[string]string{}
	for _, name := range w.o.Faults {
		if !slices.Contains(FaultNames(), name) {
			return nil, nil, fmt.Errorf("there is no fault %q; there are %s", name, strings.Join(FaultNames(), ", "))
		}
	}
	for _, f := range faults {
		if len(w.o.Faults) > 0 && !slices.Contains(w.o.Faults, f.name) {
			continue
		}
		if f.missing != nil {
			if why := f.missing(w); why != nil {
				skipped[f.name] = why.Error()
				continue
			}
		}
		possible = append(possible, f)
	}
	if len(possible) == 0 {
		return nil, skipped, fmt.Errorf("no fault can be done here: %v", skipped)
	}
	return possible, skipped, nil
}
