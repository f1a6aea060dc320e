package acceptor

import (
	"context"
	"fmt"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
)

// When a damaged copy is repaired by itself.
const (
	mendAfterMin = time.Second
	mendAfterMax = 10 * time.Minute

	// asideMax: a disk that rots again and again would be filled by what is put
	// aside. Then a person has to look at it.
	asideMax = 3
)

// mendSoon has a copy repaired by itself.
func (r *replica) mendSoon() {
	if !r.t.node.cfg.ManualRepair {
		r.mend.schedule(mendAfterMin)
	}
}

// mends reports whether the copy waits for a repair by itself, so that it is
// to stay open.
func (r *replica) mends() bool {
	return !r.t.node.cfg.ManualRepair && r.loop.Health() == wal.Quarantined
}

// repairBySelf is what the keeper does with a damaged copy when its time has come.
func (r *replica) repairBySelf(ctx context.Context) {
	t, n := r.t, r.t.node
	select {
	case n.menders <- struct{}{}:
		defer func() { <-n.menders }()
	case <-ctx.Done():
		return
	}
	t.mu.Lock()
	if t.open.Load() != r || t.deleted {
		t.mu.Unlock()
		return
	}
	r.users++
	t.mu.Unlock()
	defer t.release(r)

	err := r.mayRepairBySelf()
	if err == nil {
		err = r.repair(ctx, 0, func(*holdfastv1.RepairTimelineResponse) error { return nil })
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	wait := min(2*r.mend.wait, mendAfterMax)
	r.mend.schedule(wait)
	n.log.Warn("a damaged timeline could not be repaired", r.keys(zap.Error(err), zap.Duration("retry_after", wait))...)
}

func (r *replica) mayRepairBySelf() error {
	aside, err := storage.Quarantined(r.t.node.cfg.FS, r.t.node.dir.of(r.t.id))
	if err == nil && aside >= asideMax {
		err = fmt.Errorf("%d damaged copies are kept beside it already: look at the disk, remove them, and ask for the repair", aside)
	}
	r.repaired(err)
	return err
}

// repaired notes how a repair has ended.
func (r *replica) repaired(err error) {
	if err == nil {
		r.unrepaired.Store(nil)
		return
	}
	r.unrepaired.Store(new(err.Error()))
	r.t.node.cfg.Metrics.Repairs.Inc(metrics.RepairFailed)
}

// roomForAnother refuses to write the log anew where it would fill the disk,
// which would harm all the others.
func (r *replica) roomForAnother() error {
	n := r.t.node
	need := uint64(r.log.Bytes()) + 2*uint64(n.cfg.SegmentBytes)
	free, err := n.cfg.FS.FreeBytes(n.cfg.DataDir)
	if err == nil && free < need {
		err = &consensus.Error{Reason: consensus.ReasonNoSpace, Detail: fmt.Sprintf("%v is written anew to repair it, which takes %d bytes; %d are free", r.t.id, need, free)}
	}
	return err
}

// recordDamage makes what was found durable, so that the copy stays
// quarantined when it is opened again.
func (r *replica) recordDamage() {
	t := r.t
	t.mu.Lock() // the directory is not replaced meanwhile
	defer t.mu.Unlock()
	if t.open.Load() != r || t.deleted {
		return
	}
	if err := r.log.RecordDamage(); err != nil {
		t.node.log.Error("damage could not be recorded: when the timeline is opened again it must be found again", r.keys(zap.Error(err))...)
	}
}
