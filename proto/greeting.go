package proto

import (
	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
)

// EncodeGreeting converts a Greeting.
func EncodeGreeting(g *consensus.Greeting) *holdfastv1.Greeting {
	return &holdfastv1.Greeting{
		Version:    g.Version,
		Timeline:   g.Timeline.String(),
		CreationId: EncodeCreationID(g.Creation),
		ProposerId: EncodeProposerID(g.Proposer),
		Connection: g.Connection,
		SystemId:   g.SystemID,
		Membership: EncodeMembership(g.Membership),
	}
}

// DecodeGreeting checks the form of a Greeting. Whether the version is spoken
// and the timeline is here is for others to say.
func DecodeGreeting(in *holdfastv1.Greeting) (*consensus.Greeting, error) {
	g := &consensus.Greeting{Version: in.GetVersion(), Connection: in.GetConnection(), SystemID: in.GetSystemId()}
	var err error
	if g.Timeline, err = DecodeTimelineID(in.GetTimeline()); err != nil {
		return nil, invalidErr("greeting", err)
	}
	if g.Creation, err = DecodeCreationID(in.GetCreationId()); err != nil {
		return nil, invalidErr("greeting", err)
	}
	if g.Proposer, err = DecodeProposerID(in.GetProposerId()); err != nil {
		return nil, invalidErr("greeting", err)
	}
	if g.Membership, err = DecodeMembership(in.GetMembership()); err != nil {
		return nil, invalidErr("greeting", err)
	}
	return g, nil
}
