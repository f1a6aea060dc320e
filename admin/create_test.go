package admin

import (
	"errors"
	"strings"
	"testing"

	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

var creation = Creation{Timeline: testID, First: 0x1000000, SystemID: 42}

// creations are the ids that the nodes hold, as strings; "" where there is none.
func creations(nodes []*fakeNode) (ids []string) {
	for _, f := range nodes {
		ids = append(ids, string(f.timelines[testID.String()].GetCreationId()))
	}
	return ids
}

func TestCreateStampsOneIDOnAll(t *testing.T) {
	nodes, c := fakes(t, 3)
	id, created, err := c.Create(t.Context(), creation)
	if err != nil || !created || id.IsZero() {
		t.Fatalf("%v, %v, %v", id, created, err)
	}
	for i, got := range creations(nodes) {
		if got != string(id[:]) {
			t.Errorf("node %d has creation id %x", i+1, got)
		}
	}
	m := nodes[2].timelines[testID.String()].GetMembership()
	if m.GetGeneration() != 1 || len(m.GetMembers()) != 3 || m.GetMembers()[1].GetAddr() != nodes[1].addr {
		t.Errorf("membership %v", m)
	}
	again, created, err := c.Create(t.Context(), creation)
	if err != nil || created || again != id {
		t.Errorf("a second time: %v, %v, %v", again, created, err)
	}
	beyond := creation
	beyond.Timeline.Timeline, beyond.First = "beyond", wal.LSNMax+1
	if _, _, err := c.Create(t.Context(), beyond); err == nil || !strings.Contains(err.Error(), "positions end") || nodes[0].timelines[beyond.Timeline.String()] != nil {
		t.Errorf("a log that begins behind the last position: %v", err)
	}
	other := creation
	other.First++
	if _, _, err := c.Create(t.Context(), other); !errors.Is(err, ErrDifferent) {
		t.Errorf("with another first LSN: %v", err)
	}
}

func TestCreateCompletesWhatReachedSome(t *testing.T) {
	nodes, c := fakes(t, 3)
	nodes[1].refuse = errRefuse
	if _, _, err := c.Create(t.Context(), creation); err == nil || !strings.Contains(err.Error(), "incomplete") {
		t.Fatalf("creation with a member that refuses: %v", err)
	}
	first := creations(nodes)[0]
	nodes[1].refuse = nil
	id, created, err := c.Create(t.Context(), creation)
	if err != nil || !created {
		t.Fatal(err)
	}
	for i, got := range creations(nodes) {
		if got != string(id[:]) || got == first {
			t.Errorf("node %d has creation id %x, the first was %x", i+1, got, first)
		}
	}
}

func TestCreateNeverBringsBackALostDisk(t *testing.T) {
	nodes, c := fakes(t, 3)
	if _, _, err := c.Create(t.Context(), creation); err != nil {
		t.Fatal(err)
	}
	for _, f := range nodes {
		f.timelines[testID.String()].Term = 3
	}
	delete(nodes[2].timelines, testID.String())
	before := creations(nodes)
	if _, _, err := c.Create(t.Context(), creation); err == nil || !strings.Contains(err.Error(), "never comes back by creation") {
		t.Fatalf("a wiped member: %v", err)
	}
	for i, got := range creations(nodes) {
		if got != before[i] {
			t.Errorf("node %d was changed", i+1)
		}
	}
}

func TestCreateNeedsEveryMember(t *testing.T) {
	nodes, c := fakes(t, 3)
	nodes[1].id = 1
	if _, _, err := c.Create(t.Context(), creation); err == nil || !strings.Contains(err.Error(), "both say that they are node 1") {
		t.Errorf("two nodes with one id: %v", err)
	}
	nodes, c = fakes(t, 2)
	if _, _, err := c.Create(t.Context(), creation); err == nil || !strings.Contains(err.Error(), "odd number") {
		t.Errorf("two members: %v", err)
	}
	gone, err := Dial([]string{nodes[0].addr, nodes[1].addr, "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	if _, _, err := gone.Create(t.Context(), creation); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a member that does not answer: %v", err)
	}
	if len(nodes[0].timelines) != 0 {
		t.Error("something was created")
	}
}

func TestDelete(t *testing.T) {
	nodes, c := fakes(t, 3)
	if err := c.Delete(t.Context(), testID); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing to delete: %v", err)
	}
	if _, _, err := c.Create(t.Context(), creation); err != nil {
		t.Fatal(err)
	}
	delete(nodes[0].timelines, testID.String())
	if err := c.Delete(t.Context(), testID); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(creations(nodes), ""); got != "" {
		t.Errorf("left behind: %x", got)
	}
}

func TestBest(t *testing.T) {
	m := wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1, Addr: "a"}, {ID: 2, Addr: "b"}, {ID: 3, Addr: "c"}}}
	copyOf := func(node wal.NodeID, term wal.Term, flush wal.LSN) Answer[*Timeline] {
		return Answer[*Timeline]{Addr: string(rune('a' + node - 1)), Value: &Timeline{Node: node, Membership: m, LastLogTerm: term, Flush: flush}}
	}
	away := Answer[*Timeline]{Addr: "c", Err: ErrUnreachable}
	best, err := Best([]Answer[*Timeline]{copyOf(1, 2, 900), copyOf(2, 3, 100), away})
	if err != nil || best.Addr != "b" {
		t.Errorf("the higher term does not win: %v, %v", best.Addr, err)
	}
	if _, err := Best([]Answer[*Timeline]{copyOf(1, 2, 900), {Addr: "b", Err: ErrUnreachable}, away}); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("one of three: %v", err)
	}
	// One node reached under two addresses is one node.
	if _, err := Best([]Answer[*Timeline]{copyOf(1, 2, 900), copyOf(1, 2, 900), away}); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("one node twice: %v", err)
	}
	sick := copyOf(2, 9, 999)
	sick.Value.Health = wal.Quarantined
	if _, err := Best([]Answer[*Timeline]{copyOf(1, 2, 900), sick, away}); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("a damaged copy counted: %v", err)
	}
	nothing := Answer[*Timeline]{Err: ErrNotFound}
	if _, err := Best([]Answer[*Timeline]{nothing, nothing, away}); !errors.Is(err, ErrNotFound) {
		t.Errorf("nobody has it: %v", err)
	}
}

func TestReadTrustsNothing(t *testing.T) {
	nodes, c := fakes(t, 1)
	good := func(begin wal.LSN, data string) *holdfastv1.ReadResponse {
		return &holdfastv1.ReadResponse{BeginLsn: uint64(begin), Crc32C: wal.Checksum([]byte(data)), Data: []byte(data)}
	}
	bad := good(105, "world")
	bad.Crc32C++
	for _, x := range []struct {
		name   string
		chunks []*holdfastv1.ReadResponse
		want   string // in the error, "" for none
		got    string
	}{
		{"in order", []*holdfastv1.ReadResponse{good(100, "hello"), {}, good(105, "world")}, "", "helloworld"},
		{"a gap", []*holdfastv1.ReadResponse{good(100, "hello"), good(106, "world")}, "expected them from 0/69", "hello"},
		{"a repeat", []*holdfastv1.ReadResponse{good(100, "hello"), good(100, "hello")}, "expected them from 0/69", "hello"},
		{"damage", []*holdfastv1.ReadResponse{good(100, "hello"), bad}, "another checksum", "hello"},
		{"too much", []*holdfastv1.ReadResponse{good(100, "hello, world")}, "asked for were those below", ""},
	} {
		nodes[0].chunks = x.chunks
		var got []byte
		end, err := c.Read(t.Context(), nodes[0].addr, ReadOptions{Timeline: testID, Begin: 100, End: 110}, func(c wal.Chunk) error {
			got = append(got, c.Data...)
			return nil
		})
		if string(got) != x.got || end != 100+wal.LSN(len(got)) || (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %q up to %v, %v", x.name, got, end, err)
		}
	}
	if _, err := c.Read(t.Context(), "elsewhere:1", ReadOptions{Timeline: testID}, nil); err == nil {
		t.Error("read from an acceptor that was not named")
	}
	if _, err := c.Read(t.Context(), nodes[0].addr, ReadOptions{Timeline: testID, PinnedTerm: 7}, func(wal.Chunk) error { return nil }); err == nil || nodes[0].asked.GetRecovery().GetPinnedTerm() != 7 {
		t.Errorf("a pinned read asked %v, %v", nodes[0].asked, err)
	}
}
