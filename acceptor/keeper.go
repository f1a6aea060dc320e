package acceptor

import (
	"context"
	"time"
)

// The keeper's pace.
const (
	keeperEvery   = time.Second
	coolAfter     = 10 * time.Second // a log that did not write for so long gives its descriptors back
	prepareAgain  = 5                // rounds between attempts on a full disk
	stopTimeLimit = 5 * time.Second  // how long a timeline may take to close
)

// keep does once a second what no append should have to think of.
func (n *Node) keep(ctx context.Context) {
	t := time.NewTicker(keeperEvery)
	defer t.Stop()
	for round := 1; ; round++ {
		select {
		case <-t.C:
			n.round(ctx, round)
		case <-ctx.Done():
			return
		}
	}
}

// round is one second of the keeper.
func (n *Node) round(ctx context.Context, round int) {
	now := n.now()
	n.hot.cool(now - int64(coolAfter))
	for _, t := range n.opened.list() {
		r := t.open.Load()
		if r == nil {
			continue
		}
		if r.heal.due() {
			n.background.Go(func() { r.reopen(ctx) })
			continue
		}
		if r.mend.due() && r.mends() {
			n.background.Go(func() { r.repairBySelf(ctx) })
		}
		if r.prepareFailed.Load() && round%prepareAgain == 0 {
			n.preparer.add(r)
		}
		n.retain(r)
		// Streams hold it open by themselves; so do calls.
		idleSince := max(r.used.Load(), r.heard.Load(), r.wrote.Load())
		if r.ended() || r.loop.Streams() == 0 && !r.mends() && now-idleSince > int64(n.cfg.CloseIdleAfter) {
			t.closeIfUnused(ctx, r)
		}
	}
}
