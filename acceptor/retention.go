package acceptor

import (
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
)

// retainSlackPart: a trim waits until a sixteenth more than is to be kept is there.
const retainSlackPart = 16

// retain trims what is older than is to be kept.
func (n *Node) retain(r *replica) {
	keep := wal.LSN(n.cfg.RetainBytes)
	p := r.loop.Positions()
	if keep == 0 || p.Health != wal.Healthy || p.Flush < keep {
		return
	}
	before := min(p.Flush-keep, p.Horizon)
	if slack := max(keep/retainSlackPart, wal.LSN(n.cfg.FirstSegmentBytes)); before < r.log.OldestLSN()+slack {
		return
	}
	if r.trimming.CompareAndSwap(false, true) {
		r.trim(before, func(err error) {
			r.trimming.Store(false)
			if err != nil {
				n.log.Warn("old WAL could not be trimmed", r.keys(zap.Stringer("before_lsn", before), zap.Error(err))...)
			}
		})
	}
}

// trim lets go of what lies below before, which is at most the horizon. done
// is called once, perhaps before trim returns, and must not wait.
func (r *replica) trim(before wal.LSN, done func(error)) {
	posted := r.loop.Post(flush.Event{
		Saves: true,
		Write: func(st *wal.State) error { return r.log.Trim(st, before) },
		Done: func(err error) {
			if err == nil {
				r.t.node.preparer.add(r) // it removes what nobody needs
			}
			done(err)
		},
	})
	if !posted {
		done(flush.ErrClosed)
	}
}

// trimmedBytes is what a log holds that waits to be recycled or removed.
func trimmedBytes(log *storage.Log) (segments int, bytes int64) {
	for _, s := range log.Segments() {
		if s.Trimmed {
			segments++
			bytes += s.Bytes
		}
	}
	return segments, bytes
}
