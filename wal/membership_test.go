package wal

import (
	"strings"
	"testing"
)

func nodes(ids ...NodeID) (out []Member) {
	for _, id := range ids {
		out = append(out, Member{ID: id})
	}
	return out
}

func TestMembershipValidate(t *testing.T) {
	many := make([]Member, MembersMax+1)
	for i := range many {
		many[i].ID = NodeID(i + 1)
	}
	for _, c := range []struct {
		name string
		m    Membership
		want string // part of the error, "" if valid
	}{
		{"three", Membership{1, nodes(1, 2, 3), nil}, ""},
		{"one", Membership{1, nodes(9), nil}, ""},
		{"joint", Membership{2, nodes(1, 2, 3), nodes(2, 3, 4)}, ""},
		{"largest", Membership{1, many[:MembersMax], nil}, ""},
		{"no generation", Membership{0, nodes(1), nil}, "generation 0"},
		{"no members", Membership{1, nil, nodes(1)}, "no members"},
		{"node 0", Membership{1, nodes(0, 1), nil}, "reserved"},
		{"twice", Membership{1, nodes(1, 1), nil}, "twice"},
		{"unsorted", Membership{1, nodes(2, 1), nil}, "out of order"},
		{"unsorted new set", Membership{1, nodes(1), nodes(3, 2)}, "out of order"},
		{"too many", Membership{1, many, nil}, "at most 31"},
		{"long address", Membership{1, []Member{{1, strings.Repeat("a", 256)}}, nil}, "255"},
	} {
		err := c.m.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestMembershipHasEitherSet(t *testing.T) {
	m := Membership{1, nodes(1, 2), nodes(2, 3)}
	if !m.Has(1) || !m.Has(2) || !m.Has(3) || m.Has(4) || m.Has(0) {
		t.Fatal("Has")
	}
}

func TestMembershipEqual(t *testing.T) {
	m := Membership{1, []Member{{1, "a"}, {2, "b"}}, nil}
	for _, o := range []Membership{
		{2, []Member{{1, "a"}, {2, "b"}}, nil},
		{1, []Member{{1, "a"}}, nil},
		{1, []Member{{1, "a"}, {2, "c"}}, nil},
		{1, []Member{{1, "a"}, {2, "b"}}, nodes(3)},
	} {
		if m.Equal(o) || o.Equal(m) {
			t.Errorf("%v equals %v", m, o)
		}
	}
	if !m.Equal(Membership{1, []Member{{1, "a"}, {2, "b"}}, []Member{}}) {
		t.Error("an empty new set differs from none")
	}
}
