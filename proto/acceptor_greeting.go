package proto

import (
	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// EncodeAcceptorGreeting converts an AcceptorGreeting.
func EncodeAcceptorGreeting(g *consensus.AcceptorGreeting) *holdfastv1.AcceptorGreeting {
	return &holdfastv1.AcceptorGreeting{
		NodeId:          uint64(g.Node),
		CreationId:      EncodeCreationID(g.Creation),
		Term:            uint64(g.Term),
		Membership:      EncodeMembership(g.Membership),
		FlushLsn:        uint64(g.Flush),
		CommitLsn:       uint64(g.Commit),
		Health:          EncodeHealth(g.Health),
		RequestBytesMax: g.RequestBytesMax,
		WindowBytes:     g.WindowBytes,
	}
}

// DecodeAcceptorGreeting checks the form of an AcceptorGreeting.
func DecodeAcceptorGreeting(in *holdfastv1.AcceptorGreeting) (*consensus.AcceptorGreeting, error) {
	g := &consensus.AcceptorGreeting{
		Node:            wal.NodeID(in.GetNodeId()),
		Term:            wal.Term(in.GetTerm()),
		Flush:           wal.LSN(in.GetFlushLsn()),
		Commit:          wal.LSN(in.GetCommitLsn()),
		RequestBytesMax: in.GetRequestBytesMax(),
		WindowBytes:     in.GetWindowBytes(),
	}
	if g.Node == 0 {
		return nil, invalid("acceptor greeting: node id is 0, which is no node")
	}
	var err error
	if g.Creation, err = DecodeCreationID(in.GetCreationId()); err != nil {
		return nil, invalidErr("acceptor greeting", err)
	}
	if g.Membership, err = DecodeMembership(in.GetMembership()); err != nil {
		return nil, invalidErr("acceptor greeting", err)
	}
	if g.Health, err = DecodeHealth(in.GetHealth()); err != nil {
		return nil, invalidErr("acceptor greeting", err)
	}
	return g, nil
}
