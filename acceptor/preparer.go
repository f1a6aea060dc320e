package acceptor

import (
	"sync"

	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"go.uber.org/zap"
)

// preparer makes segments ahead of need, a few at a time, so that no append
// ever creates, extends or renames a file.
type preparer struct {
	mu     sync.Mutex
	work   sync.Cond
	queue  []*replica
	closed bool
	done   sync.WaitGroup
}

func newPreparer(workers int) *preparer {
	p := &preparer{}
	p.work.L = &p.mu
	for range workers {
		p.done.Go(p.run)
	}
	return p
}

// add queues r, once. It never waits.
func (p *preparer) add(r *replica) {
	if !r.queued.CompareAndSwap(false, true) {
		return
	}
	p.mu.Lock()
	p.queue = append(p.queue, r)
	p.mu.Unlock()
	p.work.Signal()
}

// close ends the workers after what they have in hand. What is queued is dropped.
func (p *preparer) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.work.Broadcast()
	p.done.Wait()
}

func (p *preparer) run() {
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.closed {
			p.work.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		r := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.mu.Unlock()
		r.queued.Store(false)
		r.prepare()
	}
}

// prepare makes the log's next segment and lets go of trimmed ones.
func (r *replica) prepare() {
	n := r.t.node
	err := r.log.Prepare()
	before := r.prepareFailed.Swap(err != nil)
	if err != nil {
		n.cfg.Metrics.DiskErrors.Inc(metrics.DiskPrepare)
		if !before {
			n.log.Warn("no segment could be made ahead; appends that do not fit are refused until there is one",
				r.keys(zap.Bool("disk_full", storage.IsNoSpace(err)), zap.Error(err))...)
		}
	} else if before {
		n.log.Info("segments can be made again", r.keys()...)
	}
	r.loop.Prepared()
	if err := r.log.Reclaim(); err != nil {
		n.log.Warn("a trimmed segment could not be removed", r.keys(zap.Error(err))...)
	}
}
