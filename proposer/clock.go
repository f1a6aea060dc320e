package proposer

import (
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

const (
	tickPeriod     = 100 * time.Millisecond // of the core's clock
	idlePeriod     = time.Second            // between heartbeats while the core needs no clock
	announcePeriod = 2 * time.Millisecond   // how long a new commit LSN waits for data to ride on
)

// clock drives the core's ticks, the idle heartbeats and what depends on age.
func (p *Proposer) clock() {
	period := tickPeriod
	t := time.NewTimer(period)
	defer t.Stop()
	var seen wal.LSN // the tail a period ago
	for {
		select {
		case <-p.life.Done():
			return
		case <-p.clockKick:
		case <-t.C:
			p.mu.Lock()
			p.tick(&seen)
			p.unlock(nil)
		}
		p.mu.Lock()
		period = tickPeriod
		if p.state.Phase == consensus.Leading {
			period = idlePeriod
		}
		p.mu.Unlock()
		t.Reset(period)
	}
}

// kickClock makes the clock look which period it is to keep.
func (p *Proposer) kickClock() {
	select {
	case p.clockKick <- struct{}{}:
	default:
	}
}

// tick is one period of the clock.
func (p *Proposer) tick(seen *wal.LSN) {
	if p.state.Phase != consensus.Leading {
		p.core.Tick()
		p.perform()
	} else {
		for _, m := range p.members {
			if c := m.conn; c != nil && c.feeding {
				c.beat()
			}
		}
	}
	p.meter.positions(p)
	idle := p.window.tail == *seen && p.state.Commit == p.window.tail
	*seen = p.window.tail
	for _, m := range p.members {
		c := m.conn
		if m.holds && (c == nil || !c.feeding) && time.Since(m.away) > awayGrace {
			m.holds = false
			p.releaseWindow()
		}
		if (m.holds || c != nil && c.feeding) && m.acked < p.window.tail {
			idle = false
		}
	}
	if idle {
		p.window.dropLast()
		p.window.pool.drain()
		p.released()
	}
}

// armAnnounce sees to it that a new commit LSN reaches acceptors to which no
// data is going.
func (p *Proposer) armAnnounce() {
	if !p.announceArmed && p.err == nil {
		p.announceArmed = true
		p.tasks.Add(1)
		p.announce.Reset(announcePeriod)
	}
}

// announceCommit runs when the announcer's timer has expired.
func (p *Proposer) announceCommit() {
	defer p.tasks.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.announceArmed = false
	again := false
	for _, m := range p.members {
		c := m.conn
		if c == nil || !c.feeding || c.announced >= p.state.Commit {
			continue
		}
		if c.quiet {
			c.beat()
		} else {
			c.quiet, again = true, true
		}
	}
	if again {
		p.armAnnounce()
	}
}
