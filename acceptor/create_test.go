package acceptor

import (
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func TestCreate(t *testing.T) {
	n := start(t, config(t, vfs.NewMem()))
	ask := func(change func(*holdfastv1.CreateTimelineRequest)) (*holdfastv1.CreateTimelineResponse, error) {
		in := createRequest(mainline, born)
		if change != nil {
			change(in)
		}
		return n.admin.CreateTimeline(t.Context(), in)
	}
	other := wal.CreationID{8}
	for _, step := range []struct {
		name    string
		change  func(*holdfastv1.CreateTimelineRequest)
		created bool
		refused consensus.Reason
	}{
		{"path trick", func(in *holdfastv1.CreateTimelineRequest) { in.Timeline = "../etc" }, false, consensus.ReasonProtocol},
		{"capitals", func(in *holdfastv1.CreateTimelineRequest) { in.Timeline = "t/LOCK" }, false, consensus.ReasonProtocol},
		{"no id", func(in *holdfastv1.CreateTimelineRequest) { in.CreationId = nil }, false, consensus.ReasonProtocol},
		{"not a member", func(in *holdfastv1.CreateTimelineRequest) { in.Membership.Members[0].NodeId = 2 }, false, consensus.ReasonMembership},
		{"generation 2", func(in *holdfastv1.CreateTimelineRequest) { in.Membership.Generation = 2 }, false, consensus.ReasonMembership},
		{"nothing to replace", func(in *holdfastv1.CreateTimelineRequest) { in.ReplaceCreationId = other[:] }, false, consensus.ReasonWrongTimeline},
		{"first", nil, true, ""},
		{"again", nil, false, ""},
		{"other first LSN", func(in *holdfastv1.CreateTimelineRequest) { in.FirstLsn++ }, false, proto.ReasonAlreadyExists},
		{"other creation", func(in *holdfastv1.CreateTimelineRequest) { in.CreationId = other[:] }, false, proto.ReasonAlreadyExists},
		{"replace what is not there", func(in *holdfastv1.CreateTimelineRequest) { in.CreationId, in.ReplaceCreationId = other[:], other[:15] }, false, consensus.ReasonProtocol},
		{"replace another", func(in *holdfastv1.CreateTimelineRequest) {
			in.CreationId, in.ReplaceCreationId = other[:], []byte("0123456789abcdef")
		}, false, consensus.ReasonWrongTimeline},
		{"replace", func(in *holdfastv1.CreateTimelineRequest) {
			in.CreationId, in.ReplaceCreationId, in.FirstLsn = other[:], born[:], 77
		}, true, ""},
	} {
		r, err := ask(step.change)
		if reason(err) != step.refused || (err == nil) != (step.refused == "") || r.GetCreated() != step.created {
			t.Errorf("%s: created %v, %v; expected %v %q", step.name, r.GetCreated(), err, step.created, step.refused)
		}
	}
	if s := n.status(mainline); string(s.CreationId) != string(other[:]) || s.FirstLsn != 77 {
		t.Errorf("status %v", s)
	}
	// The stream of the older creation is another log's.
	x := n.dial()
	x.send(hello(mainline, born, 1))
	if e := x.ended(); e.Reason != consensus.ReasonWrongTimeline {
		t.Errorf("a zombie was answered with %v", e)
	}
}

// TestACopyThatHasVotedIsNeverReplaced: it is what stands between a wiped
// member and a second, empty log under the same name.
func TestACopyThatHasVotedIsNeverReplaced(t *testing.T) {
	n := start(t, config(t, vfs.NewMem()))
	n.create(mainline, born)
	x, _ := n.greet(mainline, born, 1)
	x.send(&consensus.VoteRequest{Generation: 1, Term: 1})
	x.receive()
	in := createRequest(mainline, wal.CreationID{8})
	in.ReplaceCreationId = born[:]
	if _, err := n.admin.CreateTimeline(t.Context(), in); reason(err) != proto.ReasonVoted {
		t.Errorf("replacing a copy that has voted: %v", err)
	}
	if s := n.status(mainline); s.Term != 1 || string(s.CreationId) != string(born[:]) {
		t.Errorf("status %v", s)
	}
}

func TestDelete(t *testing.T) {
	disk := vfs.NewMem()
	n := start(t, config(t, disk))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	x.append(pattern(x.at, 1000))
	x.acked(x.at, 0)
	ask := func(c []byte) (bool, error) {
		r, err := n.admin.DeleteTimeline(t.Context(), &holdfastv1.DeleteTimelineRequest{Timeline: "t/main", CreationId: c})
		return r.GetDeleted(), err
	}
	if _, err := ask([]byte("0123456789abcdef")); reason(err) != consensus.ReasonWrongTimeline {
		t.Errorf("deleting another creation: %v", err)
	}
	if deleted, err := ask(born[:]); err != nil || !deleted {
		t.Errorf("%v, %v", deleted, err)
	}
	if e := x.ended(); e.Reason != proto.ReasonNotFound {
		t.Errorf("the stream ended with %v", e)
	}
	if deleted, err := ask(born[:]); err != nil || deleted {
		t.Errorf("again: %v, %v", deleted, err)
	}
	if _, err := n.admin.GetTimeline(t.Context(), &holdfastv1.GetTimelineRequest{Timeline: "t/main"}); reason(err) != proto.ReasonNotFound {
		t.Errorf("status of a deleted timeline: %v", err)
	}
	if left, err := disk.ReadDir("data/t"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	n.create(mainline, wal.CreationID{9})
	if s := n.status(mainline); s.Term != 0 || s.FlushLsn != uint64(firstLSN) {
		t.Errorf("created again: %v", s)
	}
}

// TestCrashWhileCreatingAndDeleting ends the process, and the power, after
// every operation of a creation, a replacement and a deletion: what is found is
// a whole timeline or none.
func TestCrashWhileCreatingAndDeleting(t *testing.T) {
	second := wal.CreationID{8}
	work := func(n *Node) {
		ctx := t.Context()
		c := &creation{id: mainline, state: wal.State{Creation: born, FirstLSN: firstLSN, Membership: alone, Commit: firstLSN, Horizon: firstLSN}}
		_, _, _ = n.create(ctx, c)
		c.state.Creation, c.replace = second, &born
		_, _, _ = n.create(ctx, c)
		_, _ = n.delete(ctx, mainline, second)
	}
	run := func(after int) (*vfs.Mem, *vfs.Fault) {
		disk := vfs.NewMem()
		fault := vfs.NewFault(disk)
		node, err := New(config(t, fault))
		if err != nil {
			t.Fatal(err)
		}
		if after >= 0 {
			after += fault.Mutations()
		}
		fault.CrashAfter(after)
		work(node)
		_ = node.Shutdown(t.Context())
		return disk, fault
	}
	_, whole := run(-1)
	seen := map[string]int{}
	for after := 0; ; after++ {
		disk, fault := run(after)
		for seed := range uint64(4) {
			left := disk.Crash(rand.New(rand.NewPCG(seed, uint64(after))))
			seen[found(t, left, after)]++
		}
		if !fault.Crashed() {
			break
		}
	}
	if whole.Mutations() < 10 || len(seen) != 3 {
		t.Errorf("the crashes left %v; expected the first creation, the second, and nothing", seen)
	}
}

// found starts a node on what is left of a disk and says what it has.
func found(t *testing.T, disk *vfs.Mem, after int) string {
	t.Helper()
	node, err := New(config(t, disk))
	if err != nil {
		t.Fatalf("crash after %d: %v", after, err)
	}
	defer func() { _ = node.Shutdown(t.Context()) }()
	tl := node.registry.get(mainline)
	if tl == nil {
		return "nothing"
	}
	r, err := tl.acquire()
	if err != nil {
		t.Errorf("crash after %d: %v", after, err)
		return "broken"
	}
	defer tl.release(r)
	if v := r.view(); v.health != wal.Healthy || v.flush != firstLSN {
		t.Errorf("crash after %d: %+v", after, v)
	}
	entries, err := disk.ReadDir(path.Join("data", "t"))
	if err != nil || len(entries) != 1 {
		t.Errorf("crash after %d: %v is left beside the timeline", after, entries)
	}
	return fmt.Sprint(r.loop.State().Creation)
}

func TestListIsPaged(t *testing.T) {
	disk := vfs.NewMem()
	n := start(t, config(t, disk))
	for _, name := range []string{"b/2", "a/1", "b/1", "a-b/1", "c/1"} {
		id, err := wal.ParseTimelineID(name)
		if err != nil {
			t.Fatal(err)
		}
		n.create(id, born)
	}
	n.leave()
	n = start(t, config(t, disk))
	var names []string
	in := &holdfastv1.ListTimelinesRequest{PageSize: 2}
	for {
		r, err := n.admin.ListTimelines(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range r.Timelines {
			names = append(names, x.Timeline)
			if x.FlushLsn != uint64(firstLSN) || x.Health != holdfastv1.Health_HEALTH_OK || string(x.CreationId) != string(born[:]) {
				t.Errorf("listed %v", x)
			}
		}
		if r.NextPageToken == "" {
			break
		}
		in.PageToken = r.NextPageToken
	}
	if got := fmt.Sprint(names); got != "[a-b/1 a/1 b/1 b/2 c/1]" {
		t.Errorf("listed %v", got)
	}
	r, err := n.admin.ListTimelines(t.Context(), &holdfastv1.ListTimelinesRequest{Tenant: "b"})
	if err != nil || len(r.Timelines) != 2 || r.NextPageToken != "" {
		t.Errorf("one tenant: %v, %v", r, err)
	}
}
