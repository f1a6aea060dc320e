package nemesis

import (
	"context"
	"errors"
	"time"
)

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
