package wal

import (
	"fmt"
	"slices"
)

// Member is one acceptor of a timeline and where it listens.
type Member struct {
	ID   NodeID
	Addr string
}

// MembersMax bounds each member set.
const MembersMax = 31

// Membership says which acceptors keep a timeline. Equal generations mean
// equal members. While NewMembers is not empty the membership is joint and a
// quorum needs a majority of each set. A quorum counts distinct node ids of
// these sets, never addresses or connections. The slices are sorted by id.
type Membership struct {
	Generation uint64
	Members    []Member
	NewMembers []Member
}

// Has reports whether id belongs to either set.
func (m Membership) Has(id NodeID) bool {
	is := func(x Member) bool { return x.ID == id }
	return slices.ContainsFunc(m.Members, is) || slices.ContainsFunc(m.NewMembers, is)
}

// Equal reports whether both hold the same generation, ids and addresses.
func (m Membership) Equal(o Membership) bool {
	return m.Generation == o.Generation && slices.Equal(m.Members, o.Members) && slices.Equal(m.NewMembers, o.NewMembers)
}

// Validate reports a set that is empty, unsorted, too large, or that names a
// node twice.
func (m Membership) Validate() error {
	if m.Generation == 0 {
		return fmt.Errorf("membership has generation 0; generations begin at 1")
	}
	if len(m.Members) == 0 {
		return fmt.Errorf("membership generation %d has no members", m.Generation)
	}
	for _, set := range [2][]Member{m.Members, m.NewMembers} {
		if len(set) > MembersMax {
			return fmt.Errorf("membership generation %d has %d members, at most %d are allowed", m.Generation, len(set), MembersMax)
		}
		for i, x := range set {
			if x.ID == 0 {
				return fmt.Errorf("membership generation %d: node id 0 is reserved", m.Generation)
			}
			if len(x.Addr) > 255 {
				return fmt.Errorf("membership generation %d: the address of node %d is longer than 255 bytes", m.Generation, x.ID)
			}
			if i > 0 && set[i-1].ID >= x.ID {
				return fmt.Errorf("membership generation %d: node %d is listed twice or out of order", m.Generation, x.ID)
			}
		}
	}
	return nil
}
