package proposer

import (
	"context"
	"sync"
	"time"
)

// pacer spreads bytes over time.
type pacer struct {
	bytesPerSecond int // not positive: no bound

	mu   sync.Mutex
	next time.Time // when the next byte is due
}

// wait returns when n bytes are due, or ctx ends.
func (p *pacer) wait(ctx context.Context, n int) {
	if p.bytesPerSecond <= 0 {
		return
	}
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	delay := p.next.Sub(now)
	p.next = p.next.Add(time.Duration(float64(n) / float64(p.bytesPerSecond) * float64(time.Second)))
	p.mu.Unlock()
	if delay <= 0 {
		return
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
