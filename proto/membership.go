package proto

import (
	"strings"

	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// EncodeMembership converts a membership.
func EncodeMembership(m wal.Membership) *holdfastv1.Membership {
	return &holdfastv1.Membership{
		Generation: m.Generation,
		Members:    encodeMembers(m.Members),
		NewMembers: encodeMembers(m.NewMembers),
	}
}

func encodeMembers(in []wal.Member) []*holdfastv1.Member {
	if len(in) == 0 {
		return nil
	}
	out := make([]*holdfastv1.Member, len(in))
	for i, m := range in {
		out[i] = &holdfastv1.Member{NodeId: uint64(m.ID), Addr: m.Addr}
	}
	return out
}

// DecodeMembership accepts what Membership.Validate accepts.
func DecodeMembership(in *holdfastv1.Membership) (wal.Membership, error) {
	if in == nil {
		return wal.Membership{}, invalid("membership is missing")
	}
	m := wal.Membership{Generation: in.GetGeneration()}
	var err error
	if m.Members, err = decodeMembers(in.GetMembers()); err != nil {
		return wal.Membership{}, err
	}
	if m.NewMembers, err = decodeMembers(in.GetNewMembers()); err != nil {
		return wal.Membership{}, err
	}
	if err := m.Validate(); err != nil {
		return wal.Membership{}, invalid("%v", err)
	}
	return m, nil
}

func decodeMembers(in []*holdfastv1.Member) ([]wal.Member, error) {
	if len(in) == 0 {
		return nil, nil
	}
	if len(in) > wal.MembersMax {
		return nil, invalid("membership has %d members in one set, at most %d are allowed", len(in), wal.MembersMax)
	}
	out := make([]wal.Member, len(in))
	for i, m := range in {
		if len(m.GetAddr()) > 255 {
			return nil, invalid("membership: the address of node %d has %d bytes, at most 255 are allowed", m.GetNodeId(), len(m.GetAddr()))
		}
		out[i] = wal.Member{ID: wal.NodeID(m.GetNodeId()), Addr: strings.Clone(m.GetAddr())}
	}
	return out, nil
}
