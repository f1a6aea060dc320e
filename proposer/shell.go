package proposer

import (
	"context"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
)

// perform does what the core asks for after an event, and follows where it
// stands. The caller holds mu, has just called the core, and goes on with unlock.
func (p *Proposer) perform() {
	if p.err != nil {
		return // stopped: every connection is closed already
	}
	st := p.core.Status()
	if st.Term != p.state.Term {
		p.leaveTerm()
	}
	if p.wonTerm != st.Term && (st.Phase == consensus.Recovering || st.Phase == consensus.Leading) {
		p.enterTerm(st)
	}
	for _, o := range p.core.Outputs() {
		c := p.member(o.Node).conn
		if c == nil || c.number != o.Connection {
			continue
		}
		if o.Message == nil {
			if o.Fault != nil {
				c.member.fault(o.Fault)
			}
			c.close()
			continue
		}
		c.control = append(c.control, o.Message)
		if _, ok := o.Message.(*consensus.Elected); ok {
			if s, ok := p.core.Stream(o.Node); ok {
				c.feed(s)
			}
		}
		c.wake()
	}
	if st != p.state {
		p.follow(st)
	}
}

// unlock releases mu and then tells everyone whom an advance concerns.
func (p *Proposer) unlock(scratch []*waiter) []*waiter {
	advanced := p.advanced
	p.advanced = false
	p.mu.Unlock()
	if advanced {
		since := p.meter.now()
		scratch = p.waiters.wake(p.Commit(), scratch)
		p.subs.notify()
		p.meter.woke(since)
	}
	return scratch
}

// leaveTerm forgets what was made for the term before.
func (p *Proposer) leaveTerm() {
	for _, m := range p.members {
		if m.conn != nil {
			m.conn.feeding = false
		}
	}
	p.cuts.reset(p.cuts.end)
	if p.decision != nil {
		p.decision()
		p.decision = nil
	}
}

// enterTerm prepares for a term that has just been won. Once LSNs were given
// out the window holds them and the new term goes on with it; before, the log
// begins where this term begins.
func (p *Proposer) enterTerm(st consensus.ProposerStatus) {
	p.wonTerm = st.Term
	if !p.handed {
		p.window.reset(st.Tail)
		p.cuts.reset(st.Tail)
		p.tail.Store(uint64(st.Tail))
	}
}

// follow takes note of the core's new state.
func (p *Proposer) follow(st consensus.ProposerStatus) {
	last := p.state
	p.state = st
	if st.Phase != last.Phase || st.Term != last.Term {
		p.logPhase(st)
		p.meter.phase(last.Phase, st)
		p.kickClock()
	}
	switch {
	case st.Phase == consensus.Stopped:
		p.stop(st.Err)
		return
	case st.Phase == consensus.Deciding && last.Phase != consensus.Deciding:
		p.ask(p.core.Election())
	case st.Phase == consensus.Leading && !p.handed:
		// Whoever opened the log may now build on its tail, so from here on this
		// instance may only continue it.
		p.handed = true
		p.core.Handed(st.Tail)
		close(p.ready)
	}
	if st.Commit > last.Commit {
		p.commit.Store(uint64(st.Commit))
		p.advanced = true
		p.meter.committed(last.Commit, st.Commit)
		p.armAnnounce()
	}
	p.releaseWindow()
}

func (p *Proposer) logPhase(st consensus.ProposerStatus) {
	fields := []zap.Field{zap.Stringer("phase", st.Phase), zap.Uint64("term", uint64(st.Term)), zap.Stringer("commit", st.Commit)}
	switch st.Phase {
	case consensus.Leading:
		p.logger.Info("leading: the term's start is committed", fields...)
	case consensus.Recovering:
		e := p.core.Election()
		p.logger.Info("won the term", append(fields, zap.Uint64("donor", uint64(e.Donor)), zap.Stringer("start", st.Start))...)
	case consensus.Waiting:
		p.logger.Info("backing off before another campaign", fields...)
	case consensus.Stopped:
		p.logger.Info("stopped", append(fields, zap.Error(st.Err))...)
	default:
		p.logger.Debug("campaign", fields...)
	}
}

// stop ends everything; the core has already closed the connections.
func (p *Proposer) stop(err error) {
	p.err = err
	p.end()
	if p.announce.Stop() {
		p.tasks.Done()
	}
	close(p.done)
	p.waiters.stop()
	p.subs.notify()
	p.meter.positions(p)
	p.cuts.reset(p.cuts.end)
	p.window.drop(len(p.window.chunks))
	p.window.pool.drain()
}

// ask puts a won vote to Config.Decide, or answers in its place.
func (p *Proposer) ask(e Election) {
	ctx, cancel := context.WithCancel(p.life)
	before, mine := p.decided, make(chan struct{})
	p.decision, p.decided = cancel, mine
	ask := p.config.Decide
	if ask == nil || p.handed {
		ask = p.carryOn
	}
	p.tasks.Go(func() {
		defer close(mine)
		defer cancel()
		if before != nil {
			<-before
		}
		d, err := ask(ctx, e)
		p.mu.Lock()
		if p.state.Phase == consensus.Deciding && p.state.Term == e.Term {
			if err == nil {
				err = p.core.Lead(d)
			}
			if err != nil {
				p.core.Stop(err)
			}
			p.perform()
		}
		p.unlock(nil)
	})
}

// carryOn is the answer without Config.Decide: the log goes on where it ends.
func (p *Proposer) carryOn(_ context.Context, e Election) (Decision, error) {
	d := Decision{Start: e.Start, SystemID: e.SystemID, Properties: e.Properties}
	if p.config.SystemID != 0 {
		d.SystemID = p.config.SystemID
	}
	if p.config.Properties != nil && p.config.Decide == nil {
		d.Properties = p.config.Properties
	}
	return d, nil
}

// awayGrace is how long a member that is away keeps its place in the window.
// After that it is filled from a disk when it comes back.
const awayGrace = 5 * time.Second

// releaseWindow gives up what is committed and what every member has that
// counts: those being fed, and those that have only just gone.
func (p *Proposer) releaseWindow() {
	keep := p.state.Commit
	for _, m := range p.members {
		if c := m.conn; c != nil && c.feeding {
			keep = min(keep, c.acked)
		} else if m.holds {
			keep = min(keep, m.acked)
		}
	}
	p.window.dropTo(keep)
	p.released()
}

// released follows up on chunks that left the window.
func (p *Proposer) released() {
	for f := p.cuts.get(p.cuts.first); f != nil && f.end() <= p.window.begin; f = p.cuts.get(p.cuts.first) {
		p.cuts.dropFirst()
	}
	if p.starved {
		select {
		case p.room <- struct{}{}:
		default:
		}
	}
}

// dropPassed gives up shared cuts that every stream has sent.
func (p *Proposer) dropPassed() {
	least := p.cuts.next
	for _, m := range p.members {
		if c := m.conn; c != nil && c.feeding {
			least = min(least, max(c.next, p.cuts.first))
		}
	}
	for p.cuts.first < least {
		p.cuts.dropFirst()
	}
}

// cut makes the next shared cut of what is waiting.
func (p *Proposer) cut(generation uint64) *frame {
	c, data := p.window.at(p.cuts.end)
	n := min(len(data), p.requestBytes())
	if p.config.NoCoalesce {
		n = p.ends.limit(p.cuts.end, n)
		p.released()
	}
	n = p.cutAt(p.cuts.end, n)
	f := p.newFrame(generation, p.cuts.end, c, data[:n])
	p.cuts.add(f)
	p.meter.cut(f.end(), len(f.request.Data), p.cuts.end < p.window.tail)
	return f
}

// cutMultiple is where a request ends that does not take all that is waiting:
// at a multiple of PostgreSQL's page size. So a log whose writer dies ends
// where an Append ended or where a page does, and a record that was cut can be
// closed there.
const cutMultiple = 8 << 10

// cutAt is how much of the n bytes from begin on the next request takes.
func (p *Proposer) cutAt(begin wal.LSN, n int) int {
	end := begin + wal.LSN(n)
	if cut := end - end%cutMultiple; end < p.window.tail && cut > begin && !p.config.NoCoalesce {
		return int(cut - begin)
	}
	return n
}

func (p *Proposer) newFrame(generation uint64, begin wal.LSN, c *chunk, data []byte) *frame {
	return newFrame(consensus.AppendRequest{
		Generation: generation, Term: p.state.Term, Begin: begin, Commit: p.state.Commit, Horizon: p.state.Horizon,
	}, c, data)
}

// requestBytes is the most that a shared cut may carry: what every member accepts.
func (p *Proposer) requestBytes() int {
	n := p.config.RequestBytesMax
	for _, m := range p.members {
		if c := m.conn; c != nil && c.feeding {
			n = min(n, c.requestBytesMax)
		}
	}
	return n
}
