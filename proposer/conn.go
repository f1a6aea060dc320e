package proposer

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc"
)

// conn is one stream to one member. Its sender is the only goroutine that
// sends, its receiver the only one that receives. Everything but the immutable
// fields on top is guarded by the proposer's mutex.
type conn struct {
	member *member
	stream grpc.ClientStream
	ctx    context.Context
	cancel context.CancelFunc
	number uint64 // of the connection, as the core counts

	closed bool
	idle   bool      // the sender sleeps on cond
	cond   sync.Cond // of the proposer's mutex

	// control goes out before data, in order.
	control []consensus.Message
	// heartbeat asks for an empty append that announces commit and horizon.
	heartbeat bool

	// feeding is set once this term's Elected is in control: data follows behind it.
	feeding    bool
	generation uint64
	pos        wal.LSN // where the next request begins
	acked      wal.LSN // acked <= pos; what the member has flushed
	committed  wal.LSN // what the member has confirmed to know as committed
	announced  wal.LSN // the newest commit LSN that went out
	quiet      bool    // nothing went out since the announcer last looked
	next       uint64  // number of the shared cut at pos, if it is in step
	inFlight   ends    // where unacknowledged requests end

	requestBytesMax int // what a request to this member may carry
	windowBytes     int // what may be unacknowledged

	refill    *refill // nil while the window has what comes next
	noSource  bool    // nobody has acknowledged yet what comes next
	confirmed bool    // it has acknowledged something

	scratch []*waiter // the receiver's own
}

func (c *conn) p() *Proposer { return c.member.p }

// wake lets the sender look again.
func (c *conn) wake() {
	if c.idle {
		c.idle = false
		c.cond.Signal()
	}
}

// close ends the stream. The receiver notices and cleans up.
func (c *conn) close() {
	if c.closed {
		return
	}
	c.closed = true
	c.cancel()
	c.wake()
}

// beat asks for a heartbeat.
func (c *conn) beat() {
	c.heartbeat = true
	c.wake()
}

// feed begins to send this term's log behind the Elected that is in control.
func (c *conn) feed(s consensus.Stream) {
	c.feeding, c.generation = true, s.Generation
	c.pos, c.acked = s.Resume, s.Resume
	c.next = c.p().cuts.next
	c.inFlight = ends{}
}

// sendable reports whether there is data that may go out now.
func (c *conn) sendable() bool {
	return c.feeding && c.pos < c.p().window.tail && c.mayFly()
}

// mayFly reports whether another request may be unacknowledged.
func (c *conn) mayFly() bool {
	return c.inFlight.len() < inFlightMax && int(c.pos-c.acked) < c.windowBytes
}

// send is the sender's life.
func (c *conn) send() {
	p := c.p()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !c.closed {
		switch {
		case len(c.control) > 0:
			m := c.control[0]
			c.control = append(c.control[:0], c.control[1:]...)
			c.sendMessage(m)
		case c.heartbeat && c.feeding:
			c.heartbeat = false
			c.announced, c.quiet = p.state.Commit, false
			c.sendMessage(&consensus.AppendRequest{
				Generation: c.generation, Term: p.state.Term, Begin: c.pos, Commit: p.state.Commit, Horizon: p.state.Horizon,
			})
		case c.sendable() && c.pos >= p.window.begin && (c.refill == nil || c.refillIsOver()):
			c.endRefill()
			c.sendFrame(c.take())
		case c.sendable() && c.refillStep():
		default:
			if c.refill != nil && c.refillIsOver() {
				c.endRefill()
			}
			c.idle = true
			c.cond.Wait()
			// Appenders that were woken together with this goroutine, or by the same
			// advance, get to place what they have: the request grows by it.
			p.mu.Unlock()
			runtime.Gosched()
			p.mu.Lock()
		}
	}
}

// sendMessage lets go of the lock while it sends.
func (c *conn) sendMessage(m any) {
	p := c.p()
	p.mu.Unlock()
	err := c.stream.SendMsg(m)
	p.mu.Lock()
	if err != nil {
		c.close() // why, the receiver learns
	}
}

func (c *conn) sendFrame(f *frame) {
	p := c.p()
	p.mu.Unlock()
	since := p.meter.now()
	f.encode()
	err := c.stream.SendMsg(f)
	f.release()
	p.meter.sent(since)
	p.mu.Lock()
	if err != nil {
		c.close()
	}
}

// take cuts the next request of what is in the window, the shared one if this
// stream stands where it begins. The caller gets a reference.
func (c *conn) take() *frame {
	p := c.p()
	f := p.cuts.get(c.next)
	if f == nil || f.begin() != c.pos {
		c.next = p.cuts.locate(c.pos)
		f = p.cuts.get(c.next)
	}
	switch {
	case f != nil && f.begin() == c.pos:
	case f == nil && c.pos == p.cuts.end:
		f = p.cut(c.generation)
		c.next = p.cuts.next - 1
	default:
		f = nil
	}
	if f != nil && len(f.request.Data) <= c.requestBytesMax {
		f.retain()
		c.next++
	} else {
		// Out of step: up to where it can be in step again.
		k, data := p.window.at(c.pos)
		n := min(len(data), p.config.RequestBytesMax, c.requestBytesMax, int(p.cuts.boundary(c.pos)-c.pos))
		n = p.cutAt(c.pos, n)
		f = p.newFrame(c.generation, c.pos, k, data[:n])
	}
	c.sent(f.end())
	c.announced = f.request.Commit
	p.dropPassed()
	return f
}

// sent notes that everything up to end is on its way.
func (c *conn) sent(end wal.LSN) {
	c.pos = end
	c.inFlight.add(end)
	c.quiet = false
}

// receive is the receiver's life. It returns why the stream ended, nil if it
// was closed from here.
func (c *conn) receive() error {
	p, m := c.p(), c.member
	var in proto.FromAcceptor
	for {
		if err := in.Receive(c.stream); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			if c.closed {
				return nil
			}
			return err
		}
		now := time.Now()
		p.mu.Lock()
		if c.closed {
			p.mu.Unlock()
			return nil
		}
		m.contact = now
		var fault error
		if r, ok := in.Append(); ok {
			fault = c.acknowledged(r)
		} else {
			fault = c.answered(in.Message())
		}
		p.perform()
		if c.sendable() {
			c.wake()
		}
		c.scratch = p.unlock(c.scratch)
		if fault != nil {
			return fault
		}
	}
}
