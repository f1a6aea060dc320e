package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Creation describes a timeline to be created on all acceptors of the client.
type Creation struct {
	Timeline wal.TimelineID
	First    wal.LSN // where the log begins; it never changes
	SystemID uint64  // of the database that will write; 0 = any
}

// Create makes a timeline on every acceptor of the client: they are its
// members. It needs all of them. It returns the creation id, and false if the
// timeline was there already, exactly as asked for.
//
// If an earlier creation reached only some of them, this one completes it
// under a fresh creation id, provided that no copy has ever voted. One that
// has is proof that the timeline was complete once: then a member without it
// has lost its disk, and creating it there again is refused.
func (c *Client) Create(ctx context.Context, t Creation) (wal.CreationID, bool, error) {
	if t.First > wal.LSNMax {
		return wal.CreationID{}, false, fmt.Errorf("a log cannot begin at %v: positions end at %v", t.First, wal.LSNMax)
	}
	membership, err := c.membership(ctx)
	if err != nil {
		return wal.CreationID{}, false, err
	}
	found := c.Timelines(ctx, t.Timeline)
	present := 0
	for _, a := range found {
		switch {
		case a.Err == nil:
			present++
		case !errors.Is(a.Err, ErrNotFound):
			return wal.CreationID{}, false, fmt.Errorf("creation needs every member: acceptor %s: %w", a.Addr, a.Err)
		}
	}
	if present == len(found) && sameCreation(found) {
		return found[0].Value.Creation, false, matches(found, t, membership)
	}
	for _, a := range found {
		if a.Err == nil && a.Value.Term != 0 {
			return wal.CreationID{}, false, fmt.Errorf("%v is in use on acceptor %s (term %d) and missing or different on others: those have lost their copy, and a lost copy never comes back by creation", t.Timeline, a.Addr, a.Value.Term)
		}
	}
	id := wal.CreationID{}
	rand.Read(id[:])
	// Copies that exist come first: they are the ones that can refuse, and a
	// refusal must find the others as they were.
	for _, existing := range []bool{true, false} {
		for i, a := range found {
			if (a.Err == nil) != existing {
				continue
			}
			request := &holdfastv1.CreateTimelineRequest{
				Timeline: t.Timeline.String(), CreationId: proto.EncodeCreationID(id),
				FirstLsn: uint64(t.First), SystemId: t.SystemID, Membership: proto.EncodeMembership(membership),
			}
			if existing {
				request.ReplaceCreationId = proto.EncodeCreationID(a.Value.Creation)
			}
			if _, err := c.nodes[i].CreateTimeline(ctx, request); err != nil {
				return wal.CreationID{}, false, fmt.Errorf("acceptor %s: %w; the creation is incomplete, repeat it when every member is there", a.Addr, explain(err))
			}
		}
	}
	return id, true, nil
}

// membership asks the acceptors who they are.
func (c *Client) membership(ctx context.Context) (wal.Membership, error) {
	m := wal.Membership{Generation: 1}
	nodes := c.Nodes(ctx)
	if err := failures(nodes); err != nil {
		return m, fmt.Errorf("creation needs every member: %w", err)
	}
	for _, n := range nodes {
		m.Members = append(m.Members, wal.Member{ID: n.Value.ID, Addr: n.Addr})
	}
	if len(m.Members)%2 == 0 {
		return m, fmt.Errorf("%d acceptors were named: an even number tolerates no more failures than one less, name an odd number", len(m.Members))
	}
	slices.SortFunc(m.Members, func(a, b wal.Member) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(m.Members); i++ {
		if a, b := m.Members[i-1], m.Members[i]; a.ID == b.ID {
			return m, fmt.Errorf("acceptors %s and %s both say that they are node %d: each node needs an id of its own", a.Addr, b.Addr, a.ID)
		}
	}
	return m, m.Validate()
}

func sameCreation(found []Answer[*Timeline]) bool {
	for _, a := range found {
		if a.Value.Creation != found[0].Value.Creation {
			return false
		}
	}
	return true
}

// matches reports how a timeline that is already there differs from what was asked for.
func matches(found []Answer[*Timeline], t Creation, m wal.Membership) error {
	for _, a := range found {
		v := a.Value
		switch {
		case v.First != t.First:
			return fmt.Errorf("%w: its log begins at %v, not at %v", ErrDifferent, v.First, t.First)
		case t.SystemID != 0 && v.SystemID != t.SystemID:
			return fmt.Errorf("%w: it is for database system %d, not %d", ErrDifferent, v.SystemID, t.SystemID)
		case !sameNodes(v.Membership.Members, m.Members):
			return fmt.Errorf("%w: its members are other nodes", ErrDifferent)
		}
	}
	return nil
}

// ErrDifferent: a timeline of that name exists and is not what was asked for.
var ErrDifferent = errors.New("the timeline exists and is different")

func sameNodes(a, b []wal.Member) bool {
	return slices.EqualFunc(a, b, func(x, y wal.Member) bool { return x.ID == y.ID })
}
