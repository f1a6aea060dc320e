package storage

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"syscall"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// A first batch reaches the disk without its head's sector. The next life
// writes the same frames again up to a page's end, where the padding ends too, and
// there stands the earlier life's next frame: right segment number, sequence number,
// offset and position, whole and checksummed. Only the nonce tells that no one
// wrote it in this life.
func TestFrameOfAnEarlierLifeEndsTheLog(t *testing.T) {
	mem := vfs.NewMem()
	cfg := testConfig(mem)
	l := newLog(t, cfg)
	at := sectorBytes + frameBytes(l.w.state.size()) // behind the head
	one := chunk(1, 0x1000, 1600)
	at += frameBytes(1600)
	two := chunk(1, one.End(), int(pageBytes-at-frameHeaderBytes))
	stale := chunk(1, two.End(), 300)
	must(t, l.Append(1, 0x1000, []wal.Chunk{one, two, stale}, false)) // and never synced
	name := segmentName(l.w.seg.number)
	mem = mem.CrashKeepAll()
	overwrite(t, mem, name, sectorBytes, zeroes[:]) // but the head's sector
	found := 0
	must(t, Inspect(mem, cfg.Dir, func(FileInfo) error { return nil }, func(f FrameInfo) error {
		if f.Begin == stale.Begin && f.Kind == "data" && f.Offset == pageBytes {
			found++
		}
		return nil
	}))
	if found != 1 {
		t.Fatalf("%d frames of the earlier life stand at offset %d", found, pageBytes)
	}

	cfg.FS, cfg.Rand = mem, newSeed(9)
	l = reopen(t, cfg)
	if l.FlushLSN() != 0x1000 {
		t.Fatalf("the log ends at %v without its head", l.FlushLSN())
	}
	must(t, l.Append(1, 0x1000, []wal.Chunk{one, two}, false))
	must(t, l.Sync())
	if segmentName(l.w.seg.number) != name || l.w.off != pageBytes {
		t.Fatalf("the test wants the same file and offset, got %s at %d", segmentName(l.w.seg.number), l.w.off)
	}
	cfg.FS = mem.CrashWorst()
	l = reopen(t, cfg)
	if l.FlushLSN() != stale.Begin || l.Health() != wal.Healthy {
		t.Fatalf("the log ends at %v, not %v, health %v: a frame of an earlier life counts", l.FlushLSN(), stale.Begin, l.Health())
	}
}

// The newest segment's head is in the page cache, and the disk can no longer read it.
// Nothing later proves its batch durable, yet a disk that says it cannot read has
// not said that nothing was written: the acknowledged bytes are not passed over.
func TestUnreadableHeadIsDamage(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem)
	cfg := testConfig(fault)
	l := newLog(t, cfg)
	write(t, l, 1, 500)
	must(t, l.Close(nil))
	l = reopen(t, cfg)
	write(t, l, 1, 400) // the first batch of a segment
	end, name := l.FlushLSN(), segmentName(l.w.seg.number)
	must(t, l.Close(nil))
	if name != segmentName(3) {
		t.Fatalf("the last batch is in %s", name)
	}
	fault.Inject(vfs.Rule{Ops: vfs.OpReadAtUncached, Name: path.Join(testDir, name), Effect: vfs.Fail{Err: syscall.EIO}})

	l, err := Open(cfg)
	var corruption *CorruptionError
	if !errors.As(err, &corruption) || !corruption.StateLost {
		t.Fatalf("opening says %v", err)
	}
	if l == nil || l.Health() != wal.Lost || l.Space(0, 0) != wal.SpaceNone {
		t.Fatal("a log that may have lost its last batch takes writes")
	}
	if l.FlushLSN() != end {
		t.Fatalf("the log ends at %v, acknowledged up to %v", l.FlushLSN(), end)
	}
	if len(corruption.Damage) == 0 || corruption.Damage[len(corruption.Damage)-1].File != name {
		t.Fatalf("the damage does not name %s: %v", name, corruption.Damage)
	}
}

// Trimmed segments are let go at the oldest end only. The files' numbers never have a
// gap, whenever the process ends, and a segment that a reader has open keeps its
// file, even if an older one may go.
func TestTrimmedSegmentsGoFromTheOldestEnd(t *testing.T) {
	mem := vfs.NewMem()
	l := newLog(t, testConfig(mem))
	trim := func(before wal.LSN) {
		st := l.State()
		st.Commit, st.Horizon = l.FlushLSN(), before
		must(t, makeRoom(l, 0, 0))
		must(t, l.Trim(&st, before))
	}
	for range 20 {
		write(t, l, 1, 900)
	}
	trim(l.FlushLSN() - 900*16)
	must(t, l.Reclaim()) // of the first segment, which is too small to be of use
	r := l.NewReader(l.FlushLSN() - 900*8)
	_, err := r.Next(EndUnknown)
	must(t, err)
	pinned := r.seg.number
	was, err := mem.OpenRead(path.Join(testDir, segmentName(pinned)))
	must(t, err)
	before := make([]byte, sectorBytes)
	_, err = was.ReadAt(before, 0)
	must(t, err)

	trim(l.FlushLSN() - 900*3)
	trimmed := 0
	for _, s := range l.Segments() {
		if s.Trimmed {
			trimmed++
		}
	}
	oldest := l.Segments()[0].Number
	if pinned <= oldest || pinned >= oldest+uint64(trimmed) || trimmed < 3 {
		t.Fatalf("%d segments from %d on are trimmed, %d is pinned; the test wants it behind the oldest", trimmed, oldest, pinned)
	}
	for range 40 {
		write(t, l, 1, 900)
		entries, err := mem.ReadDir(testDir)
		must(t, err)
		var numbers []uint64
		for _, e := range entries {
			if n, ok := parseSegmentName(e.Name); ok {
				numbers = append(numbers, n)
			}
		}
		slices.Sort(numbers)
		for i, n := range numbers {
			if n != numbers[0]+uint64(i) {
				t.Fatalf("the files' numbers have a gap: %d", numbers)
			}
		}
		if !slices.Contains(numbers, pinned) {
			t.Fatalf("segment %d is gone while a reader has it open", pinned)
		}
	}
	if l.Segments()[0].Number == oldest {
		t.Fatal("no segment was recycled")
	}
	after := make([]byte, sectorBytes)
	_, err = was.ReadAt(after, 0)
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Fatal("the header of a segment that a reader has open was written over")
	}
	must(t, was.Close())
	must(t, r.Close())
}
