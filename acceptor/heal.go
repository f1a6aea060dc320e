package acceptor

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"go.uber.org/zap"
)

// healing is when a poisoned replica is to be opened again.
type healing struct {
	mu   sync.Mutex
	at   time.Time // zero: it is healthy, or being reopened
	wait time.Duration
}

func (h *healing) schedule(wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait = wait
	h.at = time.Now().Add(wait)
}

// due reports, once, that the time has come.
func (h *healing) due() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.IsZero() || time.Now().Before(h.at) {
		return false
	}
	h.at = time.Time{}
	return true
}

// reopen replaces a poisoned replica by one that is made from what the disk
// really holds, if the disk works again.
func (r *replica) reopen(ctx context.Context) {
	t, n := r.t, r.t.node
	n.healers <- struct{}{} // a disk fails for all its timelines at once
	defer func() { <-n.healers }()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open.Load() != r || t.deleted {
		return
	}
	if err := r.t.proveDisk(); err != nil {
		wait := min(2*r.heal.wait, reopenAfterMax)
		r.heal.schedule(wait)
		n.log.Warn("a poisoned timeline's disk still fails", r.keys(zap.Error(err), zap.Duration("retry_after", wait))...)
		return
	}
	stop, cancel := context.WithTimeout(ctx, stopTimeLimit)
	defer cancel()
	if err := t.closeLocked(stop, reopenError); err != nil {
		r.heal.schedule(reopenAfterMax)
		n.log.Error("a poisoned timeline cannot be opened again", r.keys(zap.Error(err))...)
		return
	}
	again, err := t.openLocked()
	if err != nil {
		return // said and scheduled by openLocked; the next acquire tries again
	}
	n.log.Info("a timeline was opened again and read from the disk",
		again.keys(zap.Stringer("flush_lsn", again.log.FlushLSN()), zap.Stringer("health", again.log.Health()))...)
}

// proveDisk writes and syncs something of no consequence beside the log.
func (t *timeline) proveDisk() error {
	fsys, name := t.node.cfg.FS, t.node.dir.of(t.id)+".probe"
	err := fsys.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = writeAndRemove(fsys, name)
	}
	if err != nil {
		t.node.cfg.Metrics.DiskErrors.Inc(metrics.DiskOpen)
	}
	return err
}

func writeAndRemove(fsys vfs.FS, name string) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, 512), 0)
	if err == nil {
		err = f.Datasync()
	}
	return errors.Join(err, f.Close(), fsys.Remove(name))
}
