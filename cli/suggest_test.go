package cli

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"acceptor", "acceptors", "audit", "dump", "wal", "timeline"}
	for word, want := range map[string]string{
		"acceptr": "acceptor", // one letter missing
		"adit":    "audit",
		"duml":    "dump",
		"wla":     "wal",      // a swap is one edit
		"time":    "timeline", // the only one that begins so
		"acc":     "",         // two begin so
		"zzz":     "",
		"":        "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
