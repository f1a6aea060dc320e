package proposer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// refill brings one member bytes that have left the window, or never were in
// it, from the disk of another member that has adopted this term. The sender of
// the member's stream drives it.
type refill struct {
	source *member
	begin  wal.LSN // where it began
	since  time.Time
	stream grpc.ServerStreamingClient[holdfastv1.ReadResponse] // nil until opened
	cancel context.CancelFunc

	at   wal.LSN   // where the next bytes from the source begin
	left wal.Chunk // received and not sent
	got  bool      // the read has brought something
}

const (
	refillPause     = 200 * time.Millisecond // rest after a source failed
	refillNotePause = time.Minute            // between notes about one member
)

// refillIsOver reports whether the window can take over for good. At its very
// beginning it could not: what is there goes next.
func (c *conn) refillIsOver() bool {
	w := &c.p().window
	return c.pos >= w.begin+wal.LSN(w.pool.bytes) || c.pos == w.tail
}

// refillStep sends one request of a refill. It returns false if the sender must
// wait for a source. The lock is held, and let go meanwhile.
func (c *conn) refillStep() bool {
	p := c.p()
	r := c.refill
	if r == nil {
		source := p.source(c.member, c.pos)
		if source == nil {
			c.noSource = true
			return false
		}
		r = &refill{source: source, begin: c.pos, since: time.Now(), at: c.pos, cancel: func() {}}
		c.refill = r
		if m := c.member; r.since.Sub(m.refillNoted) > refillNotePause {
			m.refillNoted = r.since
			p.logger.Info("filling an acceptor from another one's disk", zap.Uint64("node", uint64(m.node)), zap.Uint64("source", uint64(source.node)),
				zap.Stringer("from", c.pos), zap.Uint64("bytes", uint64(p.window.tail-c.pos)))
		}
	}
	if len(r.left.Data) == 0 && !c.fetch(r) {
		return true
	}
	piece := r.left
	if n := min(c.requestBytesMax, wal.RequestBytesMax); len(piece.Data) > n {
		piece.Data = piece.Data[:n]
		piece.CRC = wal.Checksum(piece.Data)
		r.left = wal.Chunk{Begin: piece.End(), Data: r.left.Data[n:]}
		r.left.CRC = wal.Checksum(r.left.Data)
	} else {
		r.left = wal.Chunk{}
	}
	p.meter.refilled(len(piece.Data))
	c.sent(piece.End())
	c.announced = p.state.Commit
	c.sendMessage(&consensus.AppendRequest{
		Generation: c.generation, Term: p.state.Term, Begin: piece.Begin, Commit: p.state.Commit, Horizon: p.state.Horizon,
		CRC: piece.CRC, Data: piece.Data,
	})
	return true
}

// source is the member from which to read bytes that begin at lsn for feed. It
// is the core's choice, unless that one has just failed and another has them too.
func (p *Proposer) source(feed *member, lsn wal.LSN) *member {
	node, ok := p.core.Source(feed.node, lsn)
	if !ok {
		return nil
	}
	best := p.member(node)
	for i, peer := range p.core.Peers() {
		if m := p.members[i]; m != feed && peer.Adopted && peer.Acked > lsn && m.sourceFailed.Before(best.sourceFailed) {
			best = m
		}
	}
	return best
}

// fetch gets the next bytes from the source and reports whether they may be
// sent on this stream. The lock is let go meanwhile.
func (c *conn) fetch(r *refill) bool {
	p := c.p()
	term, hurry := p.state.Term, p.state.Phase != consensus.Leading
	p.mu.Unlock()
	chunk, err := r.receive(c.ctx, p, term)
	if err == nil && !hurry {
		p.pacer.wait(c.ctx, len(chunk.Data))
	}
	p.mu.Lock()
	if c.closed || !c.feeding || p.state.Term != term {
		return false
	}
	if err == nil && chunk.End() > p.window.tail {
		err = fmt.Errorf("sent bytes up to %v, the log ends at %v", chunk.End(), p.window.tail)
	}
	if err == nil {
		r.at, r.left, r.got = chunk.End(), chunk, true
		return true
	}
	c.endRefill()
	if errors.Is(err, io.EOF) && r.got {
		return false // that was all at the time: look again
	}
	p.logger.Warn("filling an acceptor failed", zap.Uint64("node", uint64(c.member.node)), zap.Uint64("source", uint64(r.source.node)), zap.Error(err))
	r.source.sourceFailed = time.Now()
	if e := proto.FromStatus(err); hurry && e != nil && (e.Reason == proto.ReasonCorrupt || e.Reason == consensus.ReasonQuarantined) {
		p.core.Distrust(r.source.node) // a recovery that leans on it cannot get on
		p.perform()
	}
	p.mu.Unlock()
	select {
	case <-time.After(refillPause):
	case <-c.ctx.Done():
	}
	p.mu.Lock()
	return false
}

// receive returns the next bytes of the source, opening the read first.
func (r *refill) receive(ctx context.Context, p *Proposer, term wal.Term) (wal.Chunk, error) {
	if r.stream == nil {
		cc, err := p.connections.get(r.source.addr, true)
		if err != nil {
			return wal.Chunk{}, err
		}
		ctx, cancel := context.WithCancel(ctx)
		r.cancel = cancel
		s, err := holdfastv1.NewAcceptorServiceClient(cc).Read(ctx, &holdfastv1.ReadRequest{
			Timeline: p.config.Timeline.String(), CreationId: proto.EncodeCreationID(p.creation),
			BeginLsn: uint64(r.at), Recovery: &holdfastv1.Recovery{PinnedTerm: uint64(term)},
		})
		if err != nil {
			return wal.Chunk{}, err
		}
		r.stream = s
	}
	for {
		in, err := r.stream.Recv()
		if errors.Is(err, io.EOF) {
			return wal.Chunk{}, fmt.Errorf("the source has nothing from %v on: %w", r.at, err)
		}
		if err != nil {
			return wal.Chunk{}, err
		}
		if len(in.GetData()) > 0 {
			return checkChunk(in, r.at)
		}
	}
}

// checkChunk checks bytes that a read brought and that must begin at lsn.
func checkChunk(in *holdfastv1.ReadResponse, lsn wal.LSN) (wal.Chunk, error) {
	chunk := wal.Chunk{Begin: wal.LSN(in.GetBeginLsn()), CRC: in.GetCrc32C(), Data: in.GetData()}
	switch {
	case chunk.Begin != lsn:
		return chunk, fmt.Errorf("sent bytes from %v, expected them from %v", chunk.Begin, lsn)
	case chunk.End() < chunk.Begin:
		return chunk, fmt.Errorf("sent %d bytes at %v, which pass the last LSN", len(chunk.Data), chunk.Begin)
	case !chunk.Intact():
		return chunk, &consensus.Error{Reason: proto.ReasonCorrupt, Detail: fmt.Sprintf("[%v, %v) does not have its checksum %08x", chunk.Begin, chunk.End(), chunk.CRC)}
	}
	return chunk, nil
}

// endRefill gives up the source.
func (c *conn) endRefill() {
	if c.refill != nil {
		c.refill.cancel()
		c.refill = nil
	}
}
