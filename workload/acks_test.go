package workload

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

var testTimeline = wal.TimelineID{Tenant: "test", Timeline: "main"}

func TestAckLogRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "acks")
	for run, seed := range []uint64{7, 8} {
		l, err := OpenAckLog(path, testTimeline, seed)
		if err != nil {
			t.Fatal(err)
		}
		base := wal.LSN(1000 * run)
		if err := errors.Join(l.Generated(2, base+200, base+300, 5), l.Generated(1, base+100, base+200, 4), l.Raw(base, base+100, 3), l.Close()); err != nil {
			t.Fatal(err)
		}
		if run == 0 { // the process was killed in the middle of a line
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteString("a 3 0/12C 0/19")
			f.Close()
		}
	}
	a, err := ReadAcksFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Runs) != 2 || a.Runs[1] != (Run{testTimeline, 8}) || len(a.List) != 6 {
		t.Fatalf("read %+v", a)
	}
	want := Ack{Begin: 1100, End: 1200, CRC: 4, Run: 1, Counter: 1}
	if a.List[0].Begin != 0 || !a.List[0].Raw || a.List[4] != want {
		t.Errorf("read %+v", a.List)
	}
}

func TestReadAcksRefuses(t *testing.T) {
	const head = ackMagic + "\nrun test/main 1\n"
	for name, c := range map[string]struct{ text, want string }{
		"another file":       {"hello\n", "line 1 is"},
		"no run":             {ackMagic + "\na 1 0/0 0/1 0.\n", "before the first run"},
		"damage in a run":    {head + "a 1 0/0 0/\na 2 0/1 0/2 0.\n", "line 3 cannot be read"},
		"lost dot":           {head + "a 1 0/0 0/1 1\na 2 0/1 0/2 0.\n", "line 3 cannot be read"},
		"damaged run":        {head + "run x 1\n", "line 3"},
		"empty range damage": {head + "a 1 0/1 0/1 0.\nr 0/1 0/2 0.\n", "line 3"},
	} {
		if _, err := ReadAcks(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	var overlap *OverlapError
	if _, err := ReadAcks(strings.NewReader(head + "a 1 0/0 0/10 0.\na 2 0/F 0/20 0.\n")); !errors.As(err, &overlap) {
		t.Errorf("two appends at one place: %v", err)
	}
	// A torn end is what a killed process leaves.
	a, err := ReadAcks(strings.NewReader(head + "a 1 0/0 0/10 0.\na 2 0/10 0/20 0"))
	if err != nil || len(a.List) != 1 {
		t.Errorf("torn end: %v, %+v", err, a)
	}
}

// TestAckLogKeepsToItsTimeline: positions of two timelines in one file once
// looked like two acknowledged appends at one place.
func TestAckLogKeepsToItsTimeline(t *testing.T) {
	dir := t.TempDir()
	other := wal.TimelineID{Tenant: "test", Timeline: "other"}
	for name, c := range map[string]struct{ text, refused string }{
		"empty":              {"", ""},
		"torn first line":    {ackMagic[:5], ""},
		"torn behind it":     {ackMagic, ""},
		"first line alone":   {ackMagic + "\n", ""},
		"torn run":           {ackMagic + "\nrun test/ma", ""},
		"its own":            {ackMagic + "\nrun test/main 1\na 1 0/0 0/1 0.\n", ""},
		"another timeline's": {ackMagic + "\nrun test/other 1\na 1 0/0 0/1 0.\n", "another timeline"},
		"another file":       {"root:x:0:0\n", "not a log of acknowledged appends"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenAckLog(path, testTimeline, 7)
		if c.refused != "" {
			after, _ := os.ReadFile(path)
			if err == nil || !strings.Contains(err.Error(), c.refused) || string(after) != c.text {
				t.Errorf("%s: %v, now %q", name, err, after)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := errors.Join(l.Generated(1, 1, 2, 3), l.Close()); err != nil {
			t.Fatal(err)
		}
		if a, err := ReadAcksFile(path); err != nil || a.Runs[len(a.Runs)-1] != (Run{testTimeline, 7}) {
			t.Errorf("%s: read back %v, %+v", name, err, a)
		}
	}
	text := ackMagic + "\nrun test/main 1\na 1 0/0 0/9 0.\nrun " + other.String() + " 2\na 1 0/1 0/8 0.\n"
	var overlap *OverlapError
	if _, err := ReadAcks(strings.NewReader(text)); err == nil || errors.As(err, &overlap) || !strings.Contains(err.Error(), "one timeline") {
		t.Errorf("two timelines: %v", err)
	}
}

func FuzzReadAcks(f *testing.F) {
	f.Add(ackMagic + "\nrun test/main 1\na 1 0/0 0/10 ab.\nr 0/10 0/20 0.\n")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ReadAcks(strings.NewReader(text))
		if err != nil {
			return
		}
		for i, k := range a.List {
			if k.End <= k.Begin || int(k.Run) >= len(a.Runs) || k.Run < 0 || i > 0 && k.Begin < a.List[i-1].End {
				t.Fatalf("record %d: %+v", i, k)
			}
		}
	})
}
