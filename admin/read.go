package admin

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// ReadOptions say what to read and from whom.
type ReadOptions struct {
	Timeline wal.TimelineID
	Creation wal.CreationID // zero accepts whichever creation is there
	Begin    wal.LSN
	End      wal.LSN // 0 = all that may be read now or, with Follow, without end
	Follow   bool

	// PinnedTerm, if not 0, reads beyond what the acceptor knows to be
	// committed, up to its flush LSN, as long as its log's last term is this one.
	PinnedTerm wal.Term

	// Term, if set, is called before yield with the term that wrote the chunk.
	Term func(wal.Term)
	// Idle, if set, is called while following when there was nothing new for a while.
	Idle func(commit wal.LSN)
}

// Read streams the bytes of a timeline from one acceptor's own disk to yield,
// in order, without a gap, each chunk's checksum verified. The data is valid
// until yield returns; an error of yield ends the read and is returned. It
// returns the end of what was read, also with an error.
func (c *Client) Read(ctx context.Context, addr string, o ReadOptions, yield func(wal.Chunk) error) (wal.LSN, error) {
	at := o.Begin
	n, err := c.node(addr)
	if err != nil {
		return at, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request := &holdfastv1.ReadRequest{
		Timeline: o.Timeline.String(), CreationId: proto.EncodeCreationID(o.Creation),
		BeginLsn: uint64(o.Begin), EndLsn: uint64(o.End), Follow: o.Follow,
	}
	if o.PinnedTerm != 0 {
		request.Recovery = &holdfastv1.Recovery{PinnedTerm: uint64(o.PinnedTerm)}
	}
	stream, err := n.reads.Read(ctx, request)
	if err != nil {
		return at, explain(err)
	}
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return at, nil
		}
		if err != nil {
			return at, explain(err)
		}
		chunk := wal.Chunk{Begin: wal.LSN(r.GetBeginLsn()), CRC: r.GetCrc32C(), Data: r.GetData()}
		if len(chunk.Data) == 0 {
			if o.Idle != nil {
				o.Idle(wal.LSN(r.GetCommitLsn()))
			}
			continue
		}
		if chunk.Begin != at {
			return at, fmt.Errorf("acceptor %s sent bytes from %v, expected them from %v", addr, chunk.Begin, at)
		}
		if o.End != 0 && chunk.End() > o.End {
			return at, fmt.Errorf("acceptor %s sent bytes up to %v, asked for were those below %v", addr, chunk.End(), o.End)
		}
		if !chunk.Intact() {
			return at, fmt.Errorf("%w: acceptor %s sent [%v, %v) with another checksum than its own", ErrDamaged, addr, chunk.Begin, chunk.End())
		}
		if o.Term != nil {
			o.Term(wal.Term(r.GetTerm()))
		}
		if err := yield(chunk); err != nil {
			return at, err
		}
		at = chunk.End()
	}
}

// ErrDamaged: bytes arrived that are not what was written.
var ErrDamaged = errors.New("damaged")

// TrimmedAt reports whether a read failed because the acceptor has given the
// bytes back to its disk, and the oldest that it still has.
func TrimmedAt(err error) (oldest wal.LSN, ok bool) {
	var e *consensus.Error
	if errors.As(err, &e) && e.Reason == proto.ReasonTrimmed {
		return e.Expected, true
	}
	return 0, false
}
