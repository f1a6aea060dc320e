package nemesis

import (
	"context"
	"errors"
)

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
