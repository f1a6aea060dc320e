package walfetch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

const mib = 1 << 20

// source is a log whose byte at x is a function of x.
type source struct {
	view quorum.View
	err  error
	fail error // of reads, half-way
}

func (s *source) View(context.Context) (quorum.View, error) { return s.view, s.err }

func (s *source) ReadCommitted(_ context.Context, _ wal.CreationID, begin, end wal.LSN, each func(wal.Chunk) error) error {
	if end > s.view.Commit {
		return errors.New("not committed")
	}
	for at := begin; at < end; at += 1000 {
		if s.fail != nil && at > begin {
			return s.fail
		}
		c := wal.Chunk{Begin: at, Data: bytesAt(at, min(1000, int(end-at)))}
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

func bytesAt(at wal.LSN, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((uint64(at)+uint64(i))%251) + 1
	}
	return b
}

// view is a log of [2 MiB, end) with TLIs 1, 2 (from 4.5 MiB) and 4 (from 6 MiB).
func view(commit, end wal.LSN, fenced bool) quorum.View {
	a := pgwal.Ancestry{{TLI: 1}, {TLI: 2, Begin: 4*mib + mib/2}, {TLI: 4, Begin: 6 * mib}}
	return quorum.View{Written: true, First: 2 * mib, Oldest: 2 * mib, Commit: commit, End: end, Term: 3,
		Properties: pgwal.Properties{SystemID: 1, Segment: mib, VersionMajor: 15, Ancestry: a, History: pgwal.FormatHistory(a), Fenced: fenced}}
}

func TestFetchDecides(t *testing.T) {
	const end = 8*mib + 100
	settled := view(end, end, true)
	live := view(end-50, end, false)
	open := view(end-50, end, true)
	early := view(4*mib, 4*mib, true) // ends before TLI 2 began
	for _, c := range []struct {
		name    string
		view    quorum.View
		mode    Mode
		outcome Outcome
		bytes   wal.LSN // how many of the file are the log's
	}{
		{"000000010000000000000002", settled, Recovery, Delivered, mib},
		{"000000010000000000000003", live, Recovery, Delivered, mib},
		{"000000010000000000000004", settled, Recovery, Delivered, mib / 2}, // TLI 1 ended in it
		{"000000020000000000000004", settled, Recovery, Delivered, mib},     // old bytes, then new ones
		{"000000020000000000000005", settled, Recovery, Delivered, mib},
		{"000000020000000000000006", settled, Recovery, Absent, 0}, // TLI 2 ended exactly there
		{"000000010000000000000005", live, Recovery, Absent, 0},    // TLI 1 ended before, for good
		{"000000040000000000000007", settled, Recovery, Delivered, mib},
		{"000000040000000000000008", settled, Recovery, Delivered, 100},
		{"000000040000000000000008", open, Recovery, Failed, 0},
		{"000000040000000000000008", live, Recovery, Failed, 0},
		{"000000040000000000000008", live, Standby, Absent, 0},
		{"000000040000000000000008", live, Live, Delivered, 50},
		{"000000040000000000000009", settled, Recovery, Absent, 0},
		{"000000040000000000000009", open, Recovery, Failed, 0},
		{"000000040000000000000009", live, Recovery, Failed, 0},
		{"000000040000000000000009", live, Standby, Absent, 0},
		{"000000040000000000000009", live, Live, Absent, 0},
		{"000000050000000000000008", settled, Recovery, Absent, 0},
		{"000000050000000000000008", live, Recovery, Failed, 0},
		{"000000020000000000000003", settled, Recovery, Absent, 0}, // TLI 2 began later
		{"000000010000000000000001", settled, Recovery, Failed, 0}, // below the log's begin
		{"000000010000000000000004", early, Recovery, Absent, 0},
		{"000000020000000000000004", early, Recovery, Absent, 0},
		{"00000002.history", early, Recovery, Absent, 0},
		{"00000002.history", live, Recovery, Delivered, 0},
		{"00000003.history", live, Recovery, Delivered, 0}, // was skipped; must not hide 4
		{"00000004.history", live, Recovery, Delivered, 0},
		{"00000005.history", live, Recovery, Absent, 0},
		{"000000010000000000000002.partial", settled, Recovery, Failed, 0},
		{"nonsense", settled, Recovery, Failed, 0},
	} {
		target := filepath.Join(t.TempDir(), "RECOVERYXLOG")
		f := &Fetcher{Source: &source{view: c.view}, Mode: c.mode}
		outcome, err := f.Fetch(t.Context(), c.name, target)
		if outcome != c.outcome || (err != nil) != (outcome == Failed) {
			t.Errorf("%s (commit %v, end %v, mode %d): %v, %v; want %v", c.name, c.view.Commit, c.view.End, c.mode, outcome, err, c.outcome)
			continue
		}
		got, err := os.ReadFile(target)
		if (err == nil) != (outcome == Delivered) {
			t.Errorf("%s: outcome %v, file: %v", c.name, outcome, err)
		}
		if c.bytes > 0 {
			_, begin, _ := pgwal.SegmentBytes(mib).ParseFileName(c.name)
			want := append(bytesAt(begin, int(c.bytes)), make([]byte, mib-c.bytes)...)
			if !bytes.Equal(got, want) {
				t.Errorf("%s: wrong bytes", c.name)
			}
		}
	}
}

func TestFetchNeverSaysAbsentInDoubt(t *testing.T) {
	dir := t.TempDir()
	for name, s := range map[string]*source{
		"no majority": {err: admin.ErrNoQuorum}, "no timeline": {err: admin.ErrNotFound}, "never written": {},
		"read fails half-way": {view: view(8*mib, 8*mib, true), fail: errors.New("gone")},
	} {
		for _, file := range []string{"000000010000000000000002", "000000010000000000000003", "00000004.history"} {
			if name == "read fails half-way" && file == "00000004.history" {
				continue
			}
			f := &Fetcher{Source: s}
			if outcome, err := f.Fetch(t.Context(), file, filepath.Join(dir, "x")); outcome.ExitStatus() != 255 || err == nil {
				t.Errorf("%s, %s: %v, %v", name, file, outcome, err)
			}
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if Delivered.ExitStatus() != 0 || Absent.ExitStatus() != 1 {
		t.Error("exit statuses")
	}
}

// waking gets a majority after the first question.
type waking struct {
	source
	asked int
}

func (w *waking) View(context.Context) (quorum.View, error) {
	if w.asked++; w.asked == 1 {
		return quorum.View{}, admin.ErrNoQuorum
	}
	return w.view, nil
}

func TestFetchWaitsForAMajority(t *testing.T) {
	w := &waking{source: source{view: view(8*mib, 8*mib, true)}}
	f := &Fetcher{Source: w, Patience: time.Minute}
	if outcome, err := f.Fetch(t.Context(), "000000010000000000000002", filepath.Join(t.TempDir(), "x")); outcome != Delivered || w.asked != 2 {
		t.Error(outcome, err, w.asked)
	}
}

func TestAhead(t *testing.T) {
	dir := t.TempDir()
	a := Ahead{Dir: filepath.Join(dir, "ahead"), Files: 3, Key: "prod/main"}
	f := &Fetcher{Source: &source{view: view(8*mib+100, 8*mib+100, true)}}
	target := filepath.Join(dir, "RECOVERYXLOG")
	if ok, err := a.Take("000000020000000000000005", target); ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := a.Fill(t.Context(), f, "000000020000000000000004"); err != nil {
		t.Fatal(err)
	}
	if ok, err := a.Take("000000020000000000000005", target); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if got, _ := os.ReadFile(target); !bytes.Equal(got, bytesAt(5*mib, mib)) {
		t.Error("wrong bytes")
	}
	if ok, _ := a.Take("000000020000000000000006", target); ok {
		t.Error("a segment beyond the timeline's end was fetched")
	}
	if err := a.Fill(t.Context(), f, "000000040000000000000006"); err != nil {
		t.Fatal(err)
	}
	if ok, _ := a.Take("000000040000000000000007", target); !ok {
		t.Error("the next whole segment is not there")
	}
	if ok, _ := a.Take("000000040000000000000008", target); ok {
		t.Error("a segment that is not whole was fetched ahead")
	}
	if err := a.Fill(t.Context(), f, "000000010000000000000002"); err != nil {
		t.Fatal(err)
	}
	a.Clear()
	if _, err := os.Stat(a.Dir); !os.IsNotExist(err) {
		t.Error("Clear left something:", err)
	}
}
