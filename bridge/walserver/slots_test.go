package walserver

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestSlotsLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slots.json")
	s, err := openSlots(path)
	if err != nil {
		t.Fatal(err)
	}
	code := func(err error) string {
		var e *slotError
		errors.As(err, &e)
		if e == nil {
			return ""
		}
		return e.code
	}
	if err := errors.Join(s.create("kept", slot{Restart: 7, TLI: 2}), s.create("temp", slot{temporary: 9})); err != nil {
		t.Fatal(err)
	}
	release, err := s.acquire("kept", 3)
	if err != nil {
		t.Fatal(err)
	}
	_, busy := s.acquire("kept", 4)
	_, missing := s.acquire("none", 4)
	for want, err := range map[string]error{"42710": s.create("kept", slot{}), "42602": s.create("No", slot{}), "55006": busy, "42704": missing} {
		if code(err) != want {
			t.Errorf("%v: want %s", err, want)
		}
	}
	if code(s.drop("kept")) != "55006" {
		t.Error("a slot in use was dropped")
	}
	s.reached("kept", 0, 1) // unknown: says nothing
	s.reached("kept", 99, 3)
	release()
	again, err := openSlots(path)
	if err != nil {
		t.Fatal(err)
	}
	if x, ok := again.read("kept"); !ok || x.Restart != 99 || x.TLI != 3 {
		t.Error(x, ok)
	}
	if _, ok := again.read("temp"); ok {
		t.Error("a temporary slot survived")
	}
	s.dropTemporary(9)
	if _, ok := s.read("temp"); ok {
		t.Error("a temporary slot outlives its connection")
	}
	if s.drop("kept") != nil || code(s.drop("kept")) != "42704" {
		t.Error("drop")
	}
}
