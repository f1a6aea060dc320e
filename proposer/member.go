package proposer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// member is one acceptor of the timeline. The fields below mu's mark are
// guarded by the proposer's mutex.
type member struct {
	p    *Proposer
	node wal.NodeID
	addr string

	conn    *conn // nil while there is none
	acked   wal.LSN
	holds   bool      // its acked counts for what the window keeps
	away    time.Time // since when there is no stream that is fed
	contact time.Time // of the last message; zero if none came
	err     error     // why the last stream ended, nil once it is fed again
	refuses bool      // for a reason that does not go away by itself

	refillNoted  time.Time // when the log last said that it is being filled
	sourceFailed time.Time // when a read from it for another member failed last
}

// Back-off between streams to one member.
const (
	backoffMin     = 20 * time.Millisecond
	backoffMax     = time.Second
	backoffClosed  = 100 * time.Millisecond // at most, when the stream was closed from here: a campaign was lost
	backoffNoSpace = time.Second
)

// run keeps a stream to the member open until the proposer stops.
func (m *member) run() {
	failures := 0
	for m.p.life.Err() == nil {
		confirmed, err := m.stream()
		if confirmed {
			failures = 0
		}
		m.ended(err)
		delay := min(backoffMin<<min(failures, 10), backoffMax)
		if err == nil {
			delay = min(delay, backoffClosed)
		}
		failures++
		if e := proto.FromStatus(err); e != nil && (e.Reason == consensus.ReasonNoSpace || e.Reason == proto.ReasonBusy) {
			delay = backoffNoSpace
		}
		select {
		case <-time.After(delay/2 + rand.N(delay/2+1)):
		case <-m.p.life.Done():
		}
	}
}

// stream opens one stream and serves it to its end. It reports whether the
// member acknowledged anything, and the error that ended it; nil if it was
// closed from here.
func (m *member) stream() (confirmed bool, err error) {
	p := m.p
	ctx, cancel := context.WithCancel(p.life)
	defer cancel()
	cc, err := p.connections.get(m.addr, false)
	if err != nil {
		return false, err
	}
	s, err := holdfastv1.NewAcceptorServiceClient(cc).Append(ctx, grpc.ForceCodecV2(codec{}))
	if err != nil {
		return false, err
	}
	c := &conn{member: m, stream: s, ctx: ctx, cancel: cancel, requestBytesMax: p.config.RequestBytesMax, windowBytes: p.config.WindowBytes}
	c.cond.L = &p.mu

	p.mu.Lock()
	g := p.core.Connect(m.node)
	if g == nil {
		p.mu.Unlock()
		return false, nil
	}
	c.number = g.Connection
	c.control = append(c.control, g)
	m.conn = c
	p.perform()
	p.unlock(nil)

	var receiver sync.WaitGroup
	receiver.Go(func() {
		err = c.receive()
		p.mu.Lock()
		c.close()
		p.mu.Unlock()
	})
	c.send()
	receiver.Wait()

	p.mu.Lock()
	if m.conn == c {
		m.conn, m.away = nil, time.Now()
	}
	p.core.Disconnect(m.node, c.number)
	confirmed = c.confirmed
	p.perform()
	p.unlock(nil)
	return confirmed, err
}

var errUnreachable = errors.New("does not answer")

// ended notes why a stream ended.
func (m *member) ended(err error) {
	if err == nil || m.p.life.Err() != nil {
		return
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the acceptor ended the stream")
	}
	e := proto.FromStatus(err)
	if e != nil {
		err = e
	} else if st, ok := status.FromError(err); ok && st.Code() == codes.Unavailable {
		err = fmt.Errorf("%w: %s", errUnreachable, st.Message())
	}
	p := m.p
	p.mu.Lock()
	again := m.err != nil && m.err.Error() == err.Error()
	m.err = err
	m.refuses = e != nil && refusal(e.Reason)
	p.meter.ended(m.node, err)
	p.checkRefusals()
	p.unlock(nil)
	if !again {
		p.logger.Warn("acceptor is away", zap.Uint64("node", uint64(m.node)), zap.String("addr", m.addr), zap.Error(err))
	}
}

// fault notes what is wrong with the member's log, which it does not know
// itself. The lock is held.
func (m *member) fault(err error) {
	again := m.err != nil && m.err.Error() == err.Error()
	m.err = err
	if !again {
		m.p.logger.Error("the log of an acceptor does not fit to those of the others", zap.Uint64("node", uint64(m.node)), zap.String("addr", m.addr), zap.Error(err))
	}
}

// refusal reports whether a reason is about who the proposer is: it stays.
func refusal(r consensus.Reason) bool {
	switch r {
	case consensus.ReasonWrongTimeline, consensus.ReasonWrongSystem, consensus.ReasonMembership, proto.ReasonNotFound:
		return true
	}
	return false
}

// checkRefusals stops the proposer if those who do not refuse are no quorum.
func (p *Proposer) checkRefusals() {
	if consensus.HasQuorum(&p.membership, func(n wal.NodeID) bool { return !p.member(n).refuses }) {
		return
	}
	e := &RefusedError{}
	for _, m := range p.members {
		if m.refuses {
			e.Members = append(e.Members, MemberError{m.node, m.addr, m.err})
		}
	}
	p.core.Stop(e)
	p.perform()
}

// answered gives the core a message that is not an acknowledgement. It returns
// why the member cannot take part, if its greeting says so.
func (c *conn) answered(msg consensus.Message) (fault error) {
	p, m := c.p(), c.member
	if g, ok := msg.(*consensus.AcceptorGreeting); ok {
		if n := g.RequestBytesMax; n > 0 {
			c.requestBytesMax = int(min(uint64(c.requestBytesMax), n))
		}
		if n := g.WindowBytes; n > 0 {
			c.windowBytes = int(min(uint64(c.windowBytes), n))
		}
		switch {
		case g.Node != m.node:
			fault = fmt.Errorf("node %d answers at this address, expected node %d", g.Node, m.node)
		case g.Creation != p.creation:
			fault = fmt.Errorf("it speaks of creation %v, expected %v", g.Creation, p.creation)
		case g.Health != wal.Healthy:
			fault = fmt.Errorf("its copy is %v", g.Health)
		}
		m.refuses = false
	}
	p.core.Step(m.node, c.number, msg)
	return fault
}

// acknowledged gives the core an acknowledgement. One of more than was sent is an error.
func (c *conn) acknowledged(r *consensus.AppendResponse) error {
	p, m := c.p(), c.member
	if !c.feeding || r.Term != p.state.Term {
		p.core.Step(m.node, c.number, r)
		return nil
	}
	if r.Flush > c.pos {
		return fmt.Errorf("acknowledged up to %v, sent were bytes up to %v", r.Flush, c.pos)
	}
	if r.Flush > c.acked {
		c.acked = r.Flush
		c.inFlight.drop(r.Flush)
	}
	c.committed = max(c.committed, r.Commit)
	m.acked, m.holds, c.confirmed = c.acked, true, true
	if m.err != nil {
		m.err = nil
		p.logger.Info("acceptor is back", zap.Uint64("node", uint64(m.node)), zap.String("addr", m.addr), zap.Stringer("flush", r.Flush))
	}
	p.meter.stages = r.Stages
	p.core.Step(m.node, c.number, r)
	for _, other := range p.members {
		if x := other.conn; x != nil && x.noSource {
			x.noSource = false
			x.wake()
		}
	}
	return nil
}
