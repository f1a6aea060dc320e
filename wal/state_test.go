package wal

import (
	"reflect"
	"testing"
)

// A clone shares no memory: otherwise a later change would reach a state that
// is already durable, or already on its way to the disk.
func TestStateCloneSharesNothing(t *testing.T) {
	make := func() State {
		return State{
			Membership: Membership{1, nodes(1, 2), nodes(3)}, Term: 2, History: History{{1, 0}, {2, 5}},
			Properties: []byte("p"), Commit: 3, Horizon: 1,
		}
	}
	st := make()
	c := st.Clone()
	if !reflect.DeepEqual(c, st) {
		t.Fatalf("the clone differs: %+v, %+v", c, st)
	}
	c.Membership.Members[0].ID, c.Membership.NewMembers[0].ID, c.History[0].LSN, c.Properties[0] = 9, 9, 9, 9
	if !reflect.DeepEqual(st, make()) {
		t.Fatalf("changing the clone changed the original: %+v", st)
	}
}

func TestHealthNames(t *testing.T) {
	for h, want := range map[Health]string{Healthy: "ok", Poisoned: "poisoned", Quarantined: "quarantined", Lost: "lost", 99: "unknown"} {
		if h.String() != want {
			t.Errorf("%d is %q, want %q", h, h.String(), want)
		}
	}
}

func TestChunkKnowsItsEndAndItsChecksum(t *testing.T) {
	c := Chunk{Begin: 100, Data: []byte("123456789"), CRC: 0xE3069283} // the check value of CRC-32C
	if c.End() != 109 || !c.Intact() {
		t.Fatalf("end %v, intact %v", c.End(), c.Intact())
	}
	c.Data = []byte("123456788")
	if c.Intact() {
		t.Fatal("a changed byte went unnoticed")
	}
}
