package acceptor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc"
)

const (
	// Small frames are joined up to this size; a larger one goes as it is,
	// with the checksum that its writer computed.
	joinBytesMax = 128 << 10

	// followBeat is how often a follower hears of the commit LSN when there is nothing new.
	followBeat = 5 * time.Second
)

// Read sends committed WAL, or, for recovery, all that is durable while the
// log's last term is the pinned one.
func (s *acceptorService) Read(request *holdfastv1.ReadRequest, stream grpc.ServerStreamingServer[holdfastv1.ReadResponse]) error {
	return s.node.status(s.node.read(request, stream))
}

func (n *Node) read(request *holdfastv1.ReadRequest, stream grpc.ServerStreamingServer[holdfastv1.ReadResponse]) error {
	id, err := proto.DecodeTimelineID(request.GetTimeline())
	if err != nil {
		return err
	}
	creation, err := proto.DecodeCreationIDOrNone(request.GetCreationId())
	if err != nil {
		return err
	}
	select {
	case n.readers <- struct{}{}:
		defer func() { <-n.readers }()
	default:
		return &consensus.Error{Reason: proto.ReasonBusy, Detail: fmt.Sprintf("%d reads are under way, which is as many as this node allows", cap(n.readers))}
	}
	n.cfg.Metrics.Readers.Inc()
	defer n.cfg.Metrics.Readers.Dec()
	t := n.registry.get(id)
	if t == nil {
		return n.notHere(id)
	}
	r, err := t.acquire()
	if err != nil {
		return err
	}
	defer t.release(r)
	if !creation.IsZero() {
		if err := checkCreation(id, r.loop.State().Creation, creation); err != nil {
			return err
		}
	}
	begin := wal.LSN(request.GetBeginLsn())
	x := &reading{
		replica: r, stream: stream, reader: r.log.NewReader(begin), pos: begin,
		end: wal.LSN(request.GetEndLsn()), follow: request.GetFollow(),
		recovery: request.GetRecovery() != nil, pinned: wal.Term(request.GetRecovery().GetPinnedTerm()),
	}
	defer x.reader.Close()
	return x.run(stream.Context())
}

// reading is one Read call.
type reading struct {
	replica *replica
	stream  grpc.ServerStreamingServer[holdfastv1.ReadResponse]
	reader  *storage.Reader

	pos      wal.LSN // the next byte to send
	end      wal.LSN // 0: none
	follow   bool
	recovery bool
	pinned   wal.Term

	out  holdfastv1.ReadResponse
	buf  []byte        // of joined frames
	next storage.Frame // was read and not sent; no data if there is none
}

func (x *reading) run(ctx context.Context) error {
	p := x.replica.loop.Positions()
	if err := x.check(p); err != nil {
		return err
	}
	if oldest := x.replica.log.OldestLSN(); x.pos < oldest {
		return trimmedError(x.pos, oldest)
	}
	if !x.follow {
		if available := x.limit(p); x.end == 0 || x.end > available {
			x.end = available
		}
	}
	for x.end == 0 || x.pos < x.end {
		p := x.replica.loop.Positions()
		if err := x.check(p); err != nil {
			return err
		}
		if x.limit(p) > x.pos {
			if err := x.send(p); err != nil {
				return err
			}
			continue
		}
		if !x.follow {
			return nil // the log was cut, or trimmed, meanwhile
		}
		if err := x.wait(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// limit is the end of what may be sent.
func (x *reading) limit(p flush.Positions) wal.LSN {
	limit := p.Commit
	if x.recovery {
		limit = p.Flush
	}
	if x.end != 0 {
		limit = min(limit, x.end)
	}
	return limit
}

// check refuses what this copy may not serve any more (A6, A9).
func (x *reading) check(p flush.Positions) error {
	if p.Health == wal.Lost && (!x.replica.filled || x.recovery) {
		return &consensus.Error{Reason: consensus.ReasonLost, Detail: fmt.Sprintf("the copy of %v here is lost; it must be rebuilt", x.replica.t.id)}
	}
	if x.recovery && p.StoredLastTerm != x.pinned {
		return &consensus.Error{Reason: proto.ReasonPinnedTerm, Term: p.StoredLastTerm, Detail: fmt.Sprintf("the read is pinned to term %d, the log's last term is %d", x.pinned, p.StoredLastTerm)}
	}
	return nil
}

// wait waits for something new.
func (x *reading) wait(ctx context.Context, now flush.Positions) error {
	beat, cancel := context.WithTimeout(ctx, followBeat)
	defer cancel()
	p, err := x.replica.loop.Wait(beat, func(p flush.Positions) bool {
		return x.limit(p) > x.pos || x.check(p) != nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, flush.ErrClosed):
		return closedError
	case err == nil:
		return nil
	}
	x.out = holdfastv1.ReadResponse{BeginLsn: uint64(x.pos), Term: uint64(p.LastLogTerm), CommitLsn: uint64(p.Commit)}
	return x.stream.Send(&x.out)
}

// send sends one run of bytes of one term.
func (x *reading) send(p flush.Positions) error {
	f, err := x.run1(x.limit(p))
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return x.replica.explain(err)
	}
	// The bytes were read while the log might have been given to another term.
	if x.recovery {
		if err := x.check(x.replica.loop.Positions()); err != nil {
			return err
		}
	}
	c := &f.Chunk
	x.out = holdfastv1.ReadResponse{
		BeginLsn: uint64(c.Begin), Term: uint64(f.Term), Crc32C: c.CRC,
		CommitLsn: uint64(x.replica.loop.Positions().Commit), Data: c.Data,
	}
	if err := x.stream.Send(&x.out); err != nil {
		return err
	}
	x.pos = c.End()
	x.replica.t.node.cfg.Metrics.ReadBytes.Add(float64(len(c.Data)))
	return nil
}

// run1 reads the next frame and joins it with those behind it that are small
// and of the same term.
func (x *reading) run1(limit wal.LSN) (storage.Frame, error) {
	first, err := x.frame(limit)
	if err != nil || len(first.Chunk.Data) >= joinBytesMax {
		return first, err
	}
	x.buf = append(x.buf[:0], first.Chunk.Data...)
	joined := first
	count := 1
	for len(x.buf) < joinBytesMax {
		f, err := x.frame(limit)
		if err != nil {
			break // it comes again, or has gone, when it is this one's turn
		}
		if f.Term != first.Term || len(x.buf)+len(f.Chunk.Data) > wal.RequestBytesMax {
			x.next = f
			break
		}
		x.buf = append(x.buf, f.Chunk.Data...)
		count++
	}
	joined.Chunk.Data = x.buf
	if count > 1 {
		joined.Chunk.CRC = wal.Checksum(x.buf)
	}
	return joined, nil
}

// frame is the frame that was put back, or the reader's next.
func (x *reading) frame(limit wal.LSN) (storage.Frame, error) {
	if len(x.next.Chunk.Data) > 0 {
		f := x.next
		x.next = storage.Frame{}
		return f, nil
	}
	return x.reader.Next(limit)
}
