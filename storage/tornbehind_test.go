package storage

import (
	"bytes"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestATornBatchBehindATruncation: the last batch of a segment in which the
// log was truncated is torn by a power cut, so that its first frame is gone and
// its second is whole. It was never acknowledged and is no part of the log; the next
// life must not take the whole frame behind it for a sign that something is lost.
// Found by crash images.
func TestATornBatchBehindATruncation(t *testing.T) {
	mem := vfs.NewMem()
	cfg := testConfig(mem)
	l := newLog(t, cfg)
	write(t, l, 1, 200, 200)
	st := l.State()
	st.Term, st.History = 2, wal.History{{Term: 1, LSN: 0x1000}, {Term: 2, LSN: 0x1100}}
	save(t, l, st, 0x1100)
	write(t, l, 2, 300)
	end := l.FlushLSN()
	want := append(pattern(1, 0x1000, 0x100), pattern(2, 0x1100, 300)...)

	write(t, l, 2, 600, 600)
	must(t, l.Close(nil))
	var file, name string // where the torn batch is
	var torn FrameInfo
	must(t, Inspect(mem, cfg.Dir, func(f FileInfo) error { file = f.Name; return nil }, func(f FrameInfo) error {
		if f.Begin == end && f.Kind == "data" {
			torn, name = f, file
		}
		return nil
	}))
	if torn.Bytes != 600 || name != segmentName(2) || len(l.Segments()) != 2 {
		t.Fatalf("the torn frame is not in the segment of the truncation, but in %s: %+v", name, torn)
	}
	overwrite(t, mem, name, torn.Offset, make([]byte, sectorBytes))

	for life := range 3 {
		l = reopen(t, cfg)
		if got := l.FlushLSN(); got != end {
			t.Fatalf("life %d: the log ends at %v, expected %v", life, got, end)
		}
		got, _ := readAll(t, l, 0x1000, end)
		if !bytes.Equal(got, want) {
			t.Fatalf("life %d: other bytes than were written", life)
		}
		if found := scrub(t, l); len(found) > 0 || l.Health() != wal.Healthy {
			t.Fatalf("life %d: health %v, damage %v", life, l.Health(), found)
		}
		write(t, l, 2, 100)
		want = append(want, pattern(2, end, 100)...)
		end = l.FlushLSN()
		must(t, l.Close(nil))
	}
}
