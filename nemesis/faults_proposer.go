package nemesis

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

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
