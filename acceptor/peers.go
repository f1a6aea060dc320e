package acceptor

import (
	"context"
	"fmt"
	"io"

	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc"
)

// peerRange is a piece of a timeline's log that is asked of a peer.
type peerRange struct {
	timeline   string
	creation   wal.CreationID
	begin, end wal.LSN

	// Without recovery the peer sends what it knows to be committed; with it,
	// all that is durable there while its log's last term is the pinned one.
	recovery *holdfastv1.Recovery
}

// readPeer hands what a peer sends of a range to yield, in order and verified.
// It returns nil when the peer has no more, perhaps before the range's end.
func readPeer(ctx context.Context, conn *grpc.ClientConn, x peerRange, yield func(wal.Term, wal.Chunk) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := holdfastv1.NewAcceptorServiceClient(conn).Read(ctx, &holdfastv1.ReadRequest{
		Timeline: x.timeline, CreationId: proto.EncodeCreationID(x.creation),
		BeginLsn: uint64(x.begin), EndLsn: uint64(x.end), Recovery: x.recovery,
	})
	if err != nil {
		return err
	}
	for at := x.begin; at < x.end; {
		r, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		c := wal.Chunk{Begin: wal.LSN(r.GetBeginLsn()), CRC: r.GetCrc32C(), Data: r.GetData()}
		if c.Begin != at || c.End() > x.end || len(c.Data) == 0 || len(c.Data) > wal.RequestBytesMax || !c.Intact() {
			return fmt.Errorf("it sent %d bytes at %v where [%v, %v) was asked for, or their checksum is wrong", len(c.Data), c.Begin, at, x.end)
		}
		if err := yield(wal.Term(r.GetTerm()), c); err != nil {
			return err
		}
		at = c.End()
	}
	return nil
}
