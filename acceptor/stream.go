package acceptor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
)

// acceptorService is what proposers and readers use.
type acceptorService struct {
	holdfastv1.UnimplementedAcceptorServiceServer
	node *Node
}

// Append is one proposer's stream. The handler waits for its end; a receiver
// goroutine reads it, and the loop's goroutine answers on it.
func (s *acceptorService) Append(stream grpc.BidiStreamingServer[holdfastv1.ProposerMessage, holdfastv1.AcceptorMessage]) error {
	n := s.node
	n.cfg.Metrics.Streams.Inc()
	defer n.cfg.Metrics.Streams.Dec()
	return n.status(n.append(stream))
}

func (n *Node) append(stream grpc.BidiStreamingServer[holdfastv1.ProposerMessage, holdfastv1.AcceptorMessage]) error {
	if n.draining.Load() {
		return drainingError
	}
	// The header at once ends the client's buffering for a transparent retry.
	if err := stream.SendHeader(nil); err != nil {
		return err
	}
	in := proto.FromProposer{Sink: noSink{}}
	g, err := greeting(&in, stream)
	if err != nil {
		return err
	}
	t := n.registry.get(g.Timeline)
	if t == nil {
		return n.notHere(g.Timeline)
	}
	if n.hot.full() {
		n.hot.cool(0)
		if n.hot.len() >= 2*n.cfg.LogsHotMax {
			return &consensus.Error{Reason: proto.ReasonBusy, Detail: "too many timelines are being written on this node at the same time"}
		}
	}
	r, err := t.acquire()
	if err != nil {
		return err
	}
	x := &appendStream{stream: stream, replica: r, ended: make(chan struct{})}
	lane := r.loop.Open(x)
	if lane == nil {
		t.release(r)
		return closedError
	}
	r.wantSegment()
	x.contact = contact{proposer: g.Proposer, connection: g.Connection, addr: address(stream.Context())}
	in.Sink = lane
	n.streams.Go(func() {
		defer t.release(r)
		if err := receive(lane, &in, stream, g); err != nil {
			x.finish(err)
		} else if !r.loop.Post(flush.Event{Done: func(error) { x.finish(nil) }}) {
			x.finish(closedError) // and otherwise when all it has sent is answered
		}
		x.leave()
		lane.Close()
	})
	select {
	case <-x.ended:
	case <-stream.Context().Done():
		x.finish(stream.Context().Err())
	}
	// What is under way ends with the return: the transport wakes a receiver
	// that reads and a loop that sends, this wakes one that waits for room.
	lane.Interrupt()
	return x.err
}

// greeting takes the stream's first message.
func greeting(in *proto.FromProposer, stream grpc.ServerStream) (*consensus.Greeting, error) {
	if err := in.Receive(stream); err != nil {
		if err == io.EOF {
			return nil, &consensus.Error{Reason: consensus.ReasonProtocol, Detail: "the stream ended before its greeting"}
		}
		return nil, err
	}
	g, ok := in.Message().(*consensus.Greeting)
	if !ok {
		return nil, &consensus.Error{Reason: consensus.ReasonProtocol, Detail: fmt.Sprintf("the stream begins with a %T, expected a greeting", in.Message())}
	}
	return g, nil
}

// noSink is the sink of a stream that has not greeted: no memory is taken for it.
type noSink struct{}

func (noSink) Take(int) ([]byte, error) {
	return nil, &consensus.Error{Reason: consensus.ReasonProtocol, Detail: "an append came before the greeting"}
}

// receive hands everything that the stream brings to the lane. It returns why
// it ended, nil if the proposer closed its side.
func receive(lane *flush.Lane, in *proto.FromProposer, stream grpc.ServerStream, g *consensus.Greeting) error {
	err := lane.Put(g)
	for err == nil {
		if err = in.Receive(stream); err != nil {
			break
		}
		if r, ok := in.Append(); ok {
			err = lane.Append(r)
		} else {
			err = lane.Put(in.Message())
		}
	}
	switch {
	case err == io.EOF:
		return nil
	case errors.Is(err, flush.ErrClosed):
		return closedError
	}
	return err
}

// appendStream is the loop's side of a stream.
type appendStream struct {
	stream  grpc.ServerStream
	replica *replica
	contact contact
	gone    atomic.Bool // the receiver has ended

	once  sync.Once
	err   error         // written before ended is closed
	ended chan struct{} // the handler may return
}

// Send implements flush.Stream.
func (x *appendStream) Send(m consensus.Message) error {
	switch m := m.(type) {
	case *consensus.AcceptorGreeting:
		x.replica.proposer.Store(&x.contact)
		if x.gone.Load() { // before its greeting was answered
			x.leave()
		}
	case *consensus.VoteResponse:
		result := metrics.VoteRefused
		if m.Granted {
			result = metrics.VoteGranted
		}
		x.replica.t.node.cfg.Metrics.Votes.Inc(result)
	}
	return x.stream.SendMsg(m)
}

// leave takes the proposer back from the status, whether it stands there
// already or is about to.
func (x *appendStream) leave() {
	x.gone.Store(true)
	x.replica.proposer.CompareAndSwap(&x.contact, nil)
}

// End implements flush.Stream.
func (x *appendStream) End(err *consensus.Error) { x.finish(err) }

// Cancel implements flush.Stream: the handler's return ends a Send that waits.
func (x *appendStream) Cancel() {
	x.finish(&consensus.Error{Reason: proto.ReasonBusy, Detail: "answers were not read for seconds, the stream was cut off"})
}

func (x *appendStream) finish(err error) {
	x.once.Do(func() {
		x.err = err
		close(x.ended)
	})
}

// address is where a call comes from.
func address(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// status counts an error and makes it what gRPC sends.
func (n *Node) status(err error) error {
	if err == nil {
		return nil
	}
	st := proto.ToStatus(err)
	if e := proto.FromStatus(st); e != nil {
		n.cfg.Metrics.Errors.Inc(string(e.Reason))
	} else {
		n.cfg.Metrics.Errors.Inc(string(proto.ReasonOther))
	}
	return st
}
