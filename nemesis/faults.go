package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
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
