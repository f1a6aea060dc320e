package wal

import (
	"slices"
	"strings"
	"testing"
)

func TestHistoryValidate(t *testing.T) {
	long := make(History, HistoryMax+1)
	for i := range long {
		long[i] = Position{Term(i + 1), LSN(i)}
	}
	for _, c := range []struct {
		name string
		h    History
		want string
	}{
		{"empty", nil, ""},
		{"one at 0", History{{1, 0}}, ""},
		{"rising", History{{1, 0}, {3, 1}, {4, 9}}, ""},
		{"longest", long[:HistoryMax], ""},
		{"too long", long, "4096"},
		{"term 0", History{{0, 5}}, "term 0"},
		{"same term", History{{1, 0}, {1, 5}}, "does not rise"},
		{"falling term", History{{2, 0}, {1, 5}}, "does not rise"},
		{"same LSN", History{{1, 5}, {2, 5}}, "does not rise"},
		{"falling LSN", History{{1, 5}, {2, 4}}, "does not rise"},
	} {
		err := c.h.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestVisibleCountsAnEntryAtTheEndOfTheLog(t *testing.T) {
	h := History{{1, 10}, {2, 20}, {5, 30}}
	for _, c := range []struct {
		flush LSN
		last  Term
	}{{9, 0}, {10, 1}, {19, 1}, {20, 2}, {29, 2}, {30, 5}, {99, 5}} {
		if got := h.Visible(c.flush).LastTerm(); got != c.last {
			t.Errorf("of a log ending at %v, term %d is the last visible one, want %d", c.flush, got, c.last)
		}
	}
	v := h.Visible(25)
	_ = append(v, Position{9, 99})
	if h[2] != (Position{5, 30}) {
		t.Error("appending to the visible part wrote into the history")
	}
}

func TestExtendDropsTermsThatKeepNothing(t *testing.T) {
	h := History{{1, 10}, {2, 20}, {3, 30}}
	for _, c := range []struct {
		start LSN
		want  History
	}{
		{40, History{{1, 10}, {2, 20}, {3, 30}, {7, 40}}},
		{30, History{{1, 10}, {2, 20}, {7, 30}}},
		{25, History{{1, 10}, {2, 20}, {7, 25}}},
		{20, History{{1, 10}, {7, 20}}},
		{10, History{{7, 10}}},
		{0, History{{7, 0}}},
	} {
		got := h.Extend(7, c.start)
		if !got.Equal(c.want) || got.Validate() != nil {
			t.Errorf("extended at %v: %v, want %v", c.start, got, c.want)
		}
	}
	if !h.Equal(History{{1, 10}, {2, 20}, {3, 30}}) {
		t.Error("Extend changed its receiver")
	}
	if got := (History)(nil).Extend(1, 5); !got.Equal(History{{1, 5}}) {
		t.Errorf("a first term: %v", got)
	}
}

// The term that wrote the last byte below the horizon must stay. That byte is
// committed and every log holds it, so two folded histories always share a
// term; a term that only begins at the horizon may be one that nobody else has.
func TestFoldKeepsTheTermBelowTheHorizon(t *testing.T) {
	h := History{{1, 10}, {2, 20}, {3, 30}}
	for _, c := range []struct {
		horizon LSN
		first   Term
	}{{0, 1}, {10, 1}, {20, 1}, {21, 2}, {30, 2}, {31, 3}, {99, 3}} {
		if got := h.Fold(c.horizon); got[0].Term != c.first || got.LastTerm() != 3 {
			t.Errorf("folded at %v: %v, want it to begin with term %d", c.horizon, got, c.first)
		}
	}
	if got := (History)(nil).Fold(5); len(got) != 0 {
		t.Errorf("an empty history folds to %v", got)
	}
}

func TestTermAt(t *testing.T) {
	h := History{{1, 10}, {3, 20}}
	for _, c := range []struct {
		at   LSN
		term Term
	}{{9, 0}, {10, 1}, {19, 1}, {20, 3}, {99, 3}} {
		if got := h.TermAt(c.at); got != c.term {
			t.Errorf("byte %v is of term %d, want %d", c.at, got, c.term)
		}
	}
	if !h.Contains(3) || h.Contains(2) || h.Contains(0) {
		t.Error("Contains")
	}
}

// FuzzHistory checks the operations against a log spelled out byte by byte.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{1, 0, 2, 5, 1, 3}, uint8(7), uint8(4))
	f.Add([]byte{3, 0, 1, 1, 1, 1, 1, 1}, uint8(1), uint8(255))
	f.Fuzz(func(t *testing.T, steps []byte, at, start uint8) {
		h := historyFrom(steps)
		if h.Validate() != nil {
			t.Fatalf("the test's own history is invalid: %v", h)
		}
		termOf := func(h History, l LSN) (term Term) {
			for _, p := range h {
				if p.LSN <= l {
					term = p.Term
				}
			}
			return term
		}
		v, e, d := h.Visible(LSN(at)), h.Extend(10_000, LSN(start)), h.Fold(LSN(at))
		for l := LSN(0); l < 300; l++ {
			want := termOf(h, l)
			if got := h.TermAt(l); got != want {
				t.Fatalf("%v: TermAt(%v) = %d, want %d", h, l, got, want)
			}
			if l <= LSN(at) && v.TermAt(l) != want {
				t.Fatalf("%v visible at %v gives byte %v to term %d, want %d", h, at, l, v.TermAt(l), want)
			}
			if l+1 >= LSN(at) && l >= 1 && d.TermAt(l) != want {
				t.Fatalf("%v folded at %v gives byte %v to term %d, want %d", h, at, l, d.TermAt(l), want)
			}
			if l >= LSN(start) {
				want = 10_000
			}
			if e.TermAt(l) != want {
				t.Fatalf("%v extended at %v gives byte %v to term %d, want %d", h, start, l, e.TermAt(l), want)
			}
		}
		if e.Validate() != nil || !slices.Equal(v, h[:len(v)]) || !slices.Equal(d, h[len(h)-len(d):]) {
			t.Fatalf("%v: visible %v, folded %v, extended %v", h, v, d, e)
		}
	})
}

// historyFrom reads pairs (term step, LSN step).
func historyFrom(steps []byte) (h History) {
	var p Position
	for i := 0; i+1 < len(steps) && len(h) < 20; i += 2 {
		p.Term += 1 + Term(steps[i]%4)
		if p.LSN += LSN(steps[i+1] % 16); len(h) > 0 && p.LSN == h[len(h)-1].LSN {
			p.LSN++
		}
		h = append(h, p)
	}
	return h
}
