package proposer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// question is what discovery wants to know.
type question struct {
	acceptors   []string
	timeline    wal.TimelineID
	connections *Connections
}

// discovery is what the acceptors say a timeline is.
type discovery struct {
	creation   wal.CreationID
	membership wal.Membership
	addrs      map[wal.NodeID]string  // where to reach each member
	commits    map[wal.NodeID]wal.LSN // what each that answered knows to be committed
	commit     wal.LSN                // the highest of them
}

// Pace of discovery. Those who have not answered when a quorum has are waited
// for only shortly: they are found by the address that the membership gives them.
// Of a log that nobody has voted in yet all are waited for, see incomplete.
const (
	askTimeout = 2 * time.Second
	askPause   = 100 * time.Millisecond
	lateAnswer = 50 * time.Millisecond
)

// testimony is one node's answer.
type testimony struct {
	addr       string
	node       wal.NodeID
	creation   wal.CreationID
	membership wal.Membership
	commit     wal.LSN
	term       wal.Term
	err        error
}

// discover asks the named acceptors, and whom they name, until a quorum of one
// membership says the same about it. Addresses never count, only node ids.
func discover(ctx context.Context, q *question) (discovery, error) {
	addrs := slices.Clone(q.acceptors)
	for {
		answers := askAll(ctx, q, addrs)
		if d, ok := conclude(answers); ok {
			return d, incomplete(q, answers, &d)
		}
		more := newAddrs(addrs, answers)
		if len(more) == 0 && unanimous(answers) {
			return discovery{}, fmt.Errorf("%w: %v", ErrNotFound, q.timeline)
		}
		addrs = append(addrs, more...)
		if len(more) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return discovery{}, fmt.Errorf("%w while looking for a majority of the members of %v: %s", ctx.Err(), q.timeline, complaintsOf(answers))
		case <-time.After(askPause):
		}
	}
}

// askAll returns the answers in the order of addrs.
func askAll(ctx context.Context, q *question, addrs []string) []testimony {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answers := make([]testimony, len(addrs))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, addr := range addrs {
		answers[i] = testimony{addr: addr, err: errors.New("no answer yet")}
	}
	for i, addr := range addrs {
		wg.Go(func() {
			answer := askOne(ctx, q, addr)
			mu.Lock()
			defer mu.Unlock()
			answers[i] = answer
			if d, ok := conclude(answers); ok && voted(answers, &d) {
				time.AfterFunc(lateAnswer, cancel)
			}
		})
	}
	wg.Wait()
	return answers
}

// askOne asks one address.
func askOne(ctx context.Context, q *question, addr string) testimony {
	t := testimony{addr: addr}
	cc, err := q.connections.get(addr, false)
	if err != nil {
		t.err = err
		return t
	}
	r, err := holdfastv1.NewAdminServiceClient(cc).GetTimeline(ctx, &holdfastv1.GetTimelineRequest{Timeline: q.timeline.String()})
	if err != nil {
		if e := proto.FromStatus(err); e != nil {
			err = e
		}
		t.err = err
		return t
	}
	in := r.GetTimeline()
	if in.GetHealth() == holdfastv1.Health_HEALTH_LOST {
		t.err = fmt.Errorf("the copy of node %d is lost", in.GetNodeId()) // what it says of members may be out of date
		return t
	}
	t.node, t.commit, t.term = wal.NodeID(in.GetNodeId()), wal.LSN(in.GetCommitLsn()), wal.Term(in.GetTerm())
	if t.creation, t.err = proto.DecodeCreationID(in.GetCreationId()); t.err != nil {
		return t
	}
	if t.membership, t.err = proto.DecodeMembership(in.GetMembership()); t.err != nil {
		return t
	}
	if !t.membership.Has(t.node) {
		t.err = fmt.Errorf("node %d says that it is no member of the timeline that it keeps", t.node)
	}
	return t
}

// conclude finds the membership, of the highest generation if there are
// several, about which a quorum of its own agrees.
func conclude(answers []testimony) (discovery, bool) {
	var best *testimony
	for i := range answers {
		a := &answers[i]
		if a.err == nil && (best == nil || a.membership.Generation > best.membership.Generation) && agreed(answers, a) {
			best = a
		}
	}
	if best == nil {
		return discovery{}, false
	}
	d := discovery{creation: best.creation, membership: best.membership, addrs: map[wal.NodeID]string{}, commits: map[wal.NodeID]wal.LSN{}}
	for _, set := range [2][]wal.Member{d.membership.Members, d.membership.NewMembers} {
		for _, m := range set {
			d.addrs[m.ID] = m.Addr
		}
	}
	// An address that was named and answers is known to work from here.
	for _, a := range slices.Backward(answers) {
		if a.err == nil && a.creation == d.creation && d.membership.Has(a.node) {
			d.addrs[a.node] = a.addr
			d.commits[a.node] = a.commit
			d.commit = max(d.commit, a.commit)
		}
	}
	return d, true
}

// incomplete is the error for a timeline that no copy has ever voted in while a
// member does not have it: its creation reached only some. To be elected now
// would make the others lost disks for good, and completing it costs nothing yet.
func incomplete(q *question, answers []testimony, d *discovery) error {
	if voted(answers, d) {
		return nil
	}
	missing := ""
	for _, a := range answers {
		if notFound(a) && slices.ContainsFunc(d.membership.Members, func(m wal.Member) bool { return m.Addr == a.addr }) {
			missing = a.addr
		}
	}
	if missing == "" {
		return nil
	}
	return fmt.Errorf("%w: %v has never been written and is not on its member %s; create it again to complete it", ErrIncomplete, q.timeline, missing)
}

// voted reports whether a copy of what was found has ever voted.
func voted(answers []testimony, d *discovery) bool {
	return slices.ContainsFunc(answers, func(a testimony) bool { return a.err == nil && a.creation == d.creation && a.term != 0 })
}

// agreed reports whether a quorum of x's membership says what x says.
func agreed(answers []testimony, x *testimony) bool {
	return consensus.HasQuorum(&x.membership, func(n wal.NodeID) bool {
		return slices.ContainsFunc(answers, func(a testimony) bool {
			return a.err == nil && a.node == n && a.creation == x.creation && a.membership.Equal(x.membership)
		})
	})
}

// newAddrs are the addresses of members that have not been asked, neither there nor elsewhere.
func newAddrs(asked []string, answers []testimony) []string {
	var more []string
	for _, a := range answers {
		if a.err != nil {
			continue
		}
		for _, set := range [2][]wal.Member{a.membership.Members, a.membership.NewMembers} {
			for _, m := range set {
				answered := slices.ContainsFunc(answers, func(b testimony) bool { return b.err == nil && b.node == m.ID })
				if !answered && m.Addr != "" && !slices.Contains(asked, m.Addr) && !slices.Contains(more, m.Addr) {
					more = append(more, m.Addr)
				}
			}
		}
	}
	return more
}

// unanimous reports whether every answer is that there is no such timeline.
func unanimous(answers []testimony) bool {
	return !slices.ContainsFunc(answers, func(a testimony) bool { return !notFound(a) })
}

func notFound(a testimony) bool {
	var e *consensus.Error
	return errors.As(a.err, &e) && e.Reason == proto.ReasonNotFound
}

func complaintsOf(answers []testimony) string {
	list := make([]MemberError, len(answers))
	for i, a := range answers {
		list[i] = MemberError{a.node, a.addr, a.err}
		if a.err == nil {
			list[i].Err = fmt.Errorf("keeps creation %v, membership generation %d", a.creation, a.membership.Generation)
		}
	}
	return joinMembers(list)
}
