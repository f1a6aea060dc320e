package acceptor

import (
	"context"
	"math"
	"time"

	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
)

// scrubFirstAfter lets a node that has just started see to its clients first.
const scrubFirstAfter = time.Minute

// scrubAll reads and verifies everything that is on the disk, one timeline
// after the other, slowly, and begins anew after a while. Rot that nobody reads
// would otherwise be found when the other copies have rotted too.
func (n *Node) scrubAll(ctx context.Context) {
	if n.cfg.ScrubBytesPerSecond < 0 {
		return
	}
	next := time.Now().Add(min(scrubFirstAfter, n.cfg.ScrubEvery))
	for sleepUntil(ctx, next) == nil {
		next = time.Now().Add(n.cfg.ScrubEvery)
		if n.scrubPass(ctx) {
			n.cfg.Metrics.ScrubPasses.Inc()
		}
	}
}

// scrubPass is one round over all timelines. It returns false if ctx ended.
func (n *Node) scrubPass(ctx context.Context) bool {
	page, _ := n.registry.page("", "", math.MaxInt)
	for _, t := range page {
		if err := t.scrub(ctx); err != nil && ctx.Err() == nil {
			n.log.Warn("a timeline could not be scrubbed", zap.String("timeline", t.name), zap.Error(err))
		}
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// scrub verifies one timeline. One that is cold is opened for it, and closed
// again unless it is damaged: then it stays open to be repaired.
func (t *timeline) scrub(ctx context.Context) error {
	wasCold := t.open.Load() == nil
	r, err := t.acquire()
	if err != nil {
		return nil // lost or poisoned, which is known; or deleted
	}
	if h := r.loop.Health(); h == wal.Healthy || h == wal.Lost {
		err = r.scrub(ctx, uint64(t.node.cfg.ScrubBytesPerSecond), func(*holdfastv1.ScrubTimelineResponse) error { return nil })
	}
	t.release(r)
	if wasCold && !r.mends() {
		t.closeIfUnused(ctx, r)
	}
	return err
}
