package blockdev

import (
	"bytes"
	"testing"
)

func TestWhatAPowerCutLeaves(t *testing.T) {
	sectors := func(letters string) []byte {
		var b []byte
		for _, c := range letters {
			b = append(b, bytes.Repeat([]byte{byte(c)}, SectorBytes)...)
		}
		return b
	}
	h := &History{Base: sectors("....")}
	h.Events = []Event{
		{Kind: Write, At: 0, Data: sectors("aa")},
		{Kind: Flush},
		{Kind: Write, At: SectorBytes, Data: sectors("bb")},
		{Kind: Note, Note: 1},
		{Kind: Write, At: 2 * SectorBytes, Data: sectors("cc")},
		{Kind: Flush},
	}
	alternate := func() func() bool {
		n := 0
		return func() bool { n++; return n%2 == 0 }
	}
	for _, c := range []struct {
		at    int
		fates []Fate
		want  string
	}{
		{0, nil, "...."},
		{1, []Fate{Dropped}, "...."},
		{1, []Fate{Kept}, "aa.."},
		{1, []Fate{Torn}, ".a.."},
		{2, nil, "aa.."},
		{5, []Fate{Dropped, Dropped}, "aa.."},
		{5, []Fate{Kept, Dropped}, "abb."},
		{5, []Fate{Dropped, Kept}, "aacc"},
		{5, []Fate{Kept, Torn}, "abbc"},
		{6, nil, "abcc"},
	} {
		p := NewPlayer(h)
		p.Seek(c.at)
		if p.Pending() != len(c.fates) {
			t.Errorf("before event %d: %d writes are pending, expected %d", c.at, p.Pending(), len(c.fates))
			continue
		}
		image := make([]byte, len(h.Base))
		p.Image(image, func(i int) Fate { return c.fates[i] }, alternate())
		if !bytes.Equal(image, sectors(c.want)) {
			t.Errorf("before event %d with fates %v: %q, expected %q", c.at, c.fates, squeeze(image), c.want)
		}
	}
}

func squeeze(b []byte) (s string) {
	for ; len(b) > 0; b = b[SectorBytes:] {
		s += string(b[:1])
	}
	return s
}
