package wal

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTimelineIDTakesTwoLabels(t *testing.T) {
	for _, s := range []string{"prod/main", "a/b", "0/9", "a-b/c--d", strings.Repeat("x", 63) + "/" + strings.Repeat("9", 63)} {
		id, err := ParseTimelineID(s)
		if err != nil {
			t.Errorf("ParseTimelineID(%q): %v", s, err)
		}
		if id.String() != s {
			t.Errorf("%q prints as %q", s, id.String())
		}
	}
}

func TestTimelineIDRefusesWhatIsNoLabel(t *testing.T) {
	for _, s := range []string{
		"", "a", "/", "a/", "/a", "a/b/c", "A/b", "a/B", "a_b/c", "-a/b", "a-/b", "a/-b", "a/b-",
		"../x", "x/..", "./x", ".", "a/.", "a\\b/c", "a/b\x00", "a/b ", "ä/b", strings.Repeat("x", 64) + "/a",
	} {
		if id, err := ParseTimelineID(s); err == nil {
			t.Errorf("ParseTimelineID(%q) = %v, want an error", s, id)
		}
	}
}

func TestZeroIDs(t *testing.T) {
	if !(CreationID{}).IsZero() || (CreationID{15: 1}).IsZero() || !(ProposerID{}).IsZero() || (ProposerID{15: 1}).IsZero() {
		t.Fatal("IsZero")
	}
	if got := (CreationID{0: 0xAB, 15: 1}).String(); got != "ab000000000000000000000000000001" {
		t.Fatal(got)
	}
}

// Whatever parses is safe as a path: it stays two plain names below its parent.
func FuzzParseTimelineID(f *testing.F) {
	for _, s := range []string{"prod/main", "../x", "a/..", "A/b", "a//b", "a/b\x00c", "-/-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseTimelineID(s)
		if err != nil {
			return
		}
		if id.String() != s {
			t.Errorf("%q prints as %q", s, id.String())
		}
		path := filepath.Join("data", id.Tenant, id.Timeline)
		if path != "data/"+s || !filepath.IsLocal(path) || strings.ToLower(s) != s {
			t.Errorf("%q is not safe as a path: %q", s, path)
		}
	})
}
