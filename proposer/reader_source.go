package proposer

import (
	"context"

	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc"
)

// readSource is one member, and the read that is open there.
type readSource struct {
	node   wal.NodeID
	addr   string
	stream grpc.ServerStreamingClient[holdfastv1.ReadResponse] // nil while none is open
	cancel context.CancelFunc
	err    error // why it failed last
}

// open begins a read at r's position.
func (s *readSource) open(r *Reader) error {
	ctx, cancel := context.WithCancel(r.life)
	request := &holdfastv1.ReadRequest{
		Timeline: r.config.Timeline.String(), CreationId: proto.EncodeCreationID(r.found.creation),
		BeginLsn: uint64(r.at), EndLsn: uint64(r.config.End), Follow: r.config.Follow,
	}
	if r.config.PinnedTerm != 0 {
		request.Recovery = &holdfastv1.Recovery{PinnedTerm: uint64(r.config.PinnedTerm)}
	}
	cc, err := r.connections.get(s.addr, true)
	if err != nil {
		cancel()
		return err
	}
	stream, err := holdfastv1.NewAcceptorServiceClient(cc).Read(ctx, request)
	if err != nil {
		cancel()
		return err
	}
	s.stream, s.cancel = stream, cancel
	return nil
}

// drop ends the open read.
func (s *readSource) drop() {
	s.cancel()
	s.stream = nil
}
