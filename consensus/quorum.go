package consensus

import (
	"slices"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Quorum is how many of n members make a majority: any two majorities share a member.
func Quorum(n int) int { return n/2 + 1 }

// HasQuorum reports whether the nodes for which has is true are a majority of
// the members and, in a joint membership, of the new members too.
func HasQuorum(m *wal.Membership, has func(wal.NodeID) bool) bool {
	return hasMajority(m.Members, has) && (len(m.NewMembers) == 0 || hasMajority(m.NewMembers, has))
}

func hasMajority(set []wal.Member, has func(wal.NodeID) bool) bool {
	n := 0
	for _, x := range set {
		if has(x.ID) {
			n++
		}
	}
	return n >= Quorum(len(set))
}

// QuorumLSN is the highest position that a majority has reached: of the
// members' positions in ascending order, the element n - quorum. In a joint membership it
// is the lower of both sets' results.
func QuorumLSN(m *wal.Membership, at func(wal.NodeID) wal.LSN) wal.LSN {
	l := majorityLSN(m.Members, at)
	if len(m.NewMembers) > 0 {
		l = min(l, majorityLSN(m.NewMembers, at))
	}
	return l
}

func majorityLSN(set []wal.Member, at func(wal.NodeID) wal.LSN) wal.LSN {
	if len(set) == 0 {
		return 0
	}
	var room [wal.MembersMax]wal.LSN
	lsns := room[:0]
	for _, x := range set {
		lsns = append(lsns, at(x.ID))
	}
	slices.Sort(lsns)
	return lsns[len(lsns)-Quorum(len(lsns))]
}
