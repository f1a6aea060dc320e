package storage

import (
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// overwrite puts b into a file of the timeline, durably.
func overwrite(t *testing.T, fsys vfs.FS, name string, off int64, b []byte) {
	t.Helper()
	f, err := fsys.Open(path.Join(testDir, name))
	must(t, err)
	_, err = f.WriteAt(b, off)
	must(t, err)
	must(t, f.Datasync())
	must(t, f.Close())
}

// Frames of a torn batch in the segment before, and a rotted head with acknowledged
// batches behind it: what follows the tear is not taken for what the head led to.
func TestRottedHeadBehindATornTail(t *testing.T) {
	mem := vfs.NewMem()
	cfg := testConfig(mem)
	l := newLog(t, cfg)
	write(t, l, 1, 100)
	off := l.w.off
	must(t, l.Append(1, 0x1000, []wal.Chunk{chunk(1, 0x1064, 600), chunk(1, 0x1064+600, 300), chunk(1, 0x1064+900, 300)}, false))
	torn := segmentName(l.w.seg.number)
	mem = mem.CrashKeepAll()
	overwrite(t, mem, torn, off, zeroes[:])

	cfg.FS, cfg.Rand = mem, newSeed(9)
	l = reopen(t, cfg)
	if l.FlushLSN() != 0x1064 {
		t.Fatalf("the log ends at %v", l.FlushLSN())
	}
	write(t, l, 2, 600)
	write(t, l, 2, 300)
	write(t, l, 2, 300)
	overwrite(t, mem, segmentName(l.w.seg.number), sectorBytes, zeroes[:])
	must(t, l.Close(nil))

	l, err := Open(cfg)
	var corruption *CorruptionError
	if !errors.As(err, &corruption) || !corruption.StateLost {
		t.Fatalf("opening says %v", err)
	}
	for at := wal.LSN(0x1000); at < 0x1064+1200; at++ {
		b, terms, err := tryReadAll(l, at, at+1)
		var damage *DamageError
		if errors.As(err, &damage) {
			continue
		}
		want := wal.Term(1)
		if at >= 0x1064 {
			want = 2
		}
		if err != nil || len(b) != 1 || terms[0] != want || b[0] != pattern(want, at, 1)[0] {
			t.Fatalf("at %v: % x of term %v, %v", at, b, terms, err)
		}
	}
}

// fsyncgate: the sync fails, the process restarts, a later sync succeeds and the
// page cache shows bytes that the disk does not have.
func TestFailedSyncIsFinalAndTheCacheIsNotBelieved(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem)
	cfg := testConfig(fault)
	l := newLog(t, cfg)
	write(t, l, 1, 500)
	fault.Inject(vfs.Rule{Ops: vfs.OpDatasync, Times: 1, Effect: vfs.LoseSync{}})
	if err := tryWrite(l, 1, 500); !errors.Is(err, syscall.EIO) {
		t.Fatalf("write: %v", err)
	}
	var poisoned *PoisonedError
	syncs := fault.Count(vfs.OpDatasync)
	for _, err := range []error{l.Sync(), l.Append(1, 0x1000, nil, false), l.SaveState(&wal.State{}, 0), l.Seal(), l.Trim(&wal.State{}, 9), l.Err()} {
		if !errors.As(err, &poisoned) {
			t.Errorf("after the failure: %v", err)
		}
	}
	if l.Health() != wal.Poisoned || l.Space(0, 0) != wal.SpaceNone || fault.Count(vfs.OpDatasync) != syncs {
		t.Errorf("health %v, space %v, %d more syncs", l.Health(), l.Space(0, 0), fault.Count(vfs.OpDatasync)-syncs)
	}
	if b, _ := readAll(t, l, 0x1000, EndUnknown); len(b) != 500 {
		t.Errorf("%d bytes are readable, 500 are durable", len(b))
	}
	must(t, l.Close(&wal.State{}))
	mem.Restart()
	l = reopen(t, cfg)
	if l.FlushLSN() != 0x1000+500 {
		t.Fatalf("the log ends at %v", l.FlushLSN())
	}
	write(t, l, 1, 300)
	if b, _ := readAll(t, l, 0x1000, EndUnknown); !bytes.Equal(b, pattern(1, 0x1000, 800)) {
		t.Fatal("wrong bytes")
	}
}

func TestSyncFailureAtOpeningIsPoison(t *testing.T) {
	mem := vfs.NewMem()
	l := newLog(t, testConfig(mem))
	write(t, l, 1, 500)
	fault := vfs.NewFault(mem)
	fault.Inject(vfs.Rule{Ops: vfs.OpDatasync, Effect: vfs.Fail{Err: syscall.EIO}})
	cfg := testConfig(fault)
	var poisoned *PoisonedError
	if l, err := Open(cfg); l != nil || !errors.As(err, &poisoned) {
		t.Fatalf("opened: %v, %v", l, err)
	}
}

// A rotted frame with a header that still tells what it was costs its own bytes and nothing else.
func TestDataRotLosesNoState(t *testing.T) {
	mem := vfs.NewMem()
	cfg := testConfig(mem)
	l := newLog(t, cfg)
	write(t, l, 1, 500)
	off := l.w.off
	write(t, l, 1, 400)
	write(t, l, 1, 300)
	must(t, mem.FlipBit(path.Join(testDir, segmentName(l.w.seg.number)), off+frameHeaderBytes+5, 3))
	must(t, l.Close(nil))
	l, err := Open(cfg)
	var corruption *CorruptionError
	if !errors.As(err, &corruption) || corruption.StateLost || len(corruption.Damage) != 1 {
		t.Fatalf("opening says %v", err)
	}
	if d := corruption.Damage[0]; d.Begin != 0x1000+500 || d.End != 0x1000+900 || !strings.Contains(err.Error(), "0/11F4 to 0/1384") {
		t.Errorf("damage is %v", d)
	}
	if b, _, err := tryReadAll(l, 0x1000, 0x1000+500); err != nil || len(b) != 500 {
		t.Errorf("below the damage: %d bytes, %v", len(b), err)
	}
	if b, _, err := tryReadAll(l, 0x1000+900, EndUnknown); err != nil || len(b) != 300 {
		t.Errorf("above the damage: %d bytes, %v", len(b), err)
	}
}

// A full disk refuses data before it is written, still records votes and
// restarts from the spares, refuses when those are used up, and returns by itself.
func TestFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	cfg := testConfig(mem)
	spares, err := NewSpares(mem, "data/spare", cfg.FirstSegmentBytes)
	must(t, err)
	must(t, spares.Fill(3))
	cfg.Spares = spares
	l := newLog(t, cfg)
	mem.SetCapacity(0)
	total := 0
	for err = nil; err == nil; {
		if err = tryWrite(l, 1, 1000); err == nil {
			total += 1000
		}
	}
	if !IsNoSpace(err) || l.Err() != nil || l.Space(1, 1000) != wal.SpaceNone {
		t.Fatalf("full: %v, log %v, space %v", err, l.Err(), l.Space(1, 1000))
	}
	vote := func() error {
		if l.Space(0, 0) != wal.SpaceOpen {
			_ = l.Prepare() // says that the disk is full
		}
		if err := makeRoom(l, 0, 0); err != nil {
			return err
		}
		st := l.State()
		st.Term++
		if err := l.SaveState(&st, l.WriteLSN()); err != nil {
			return err
		}
		return l.Sync()
	}
	votes := 0
	for range 3 { // restarts, each with a vote
		must(t, l.Close(nil))
		l, err = Open(cfg)
		must(t, err)
		must(t, vote())
		votes++
		if s := l.Space(1, 1000); s != wal.SpaceNone {
			t.Fatalf("a spare takes data: space %v", s)
		}
	}
	for err = nil; err == nil; votes++ {
		err = vote()
	}
	votes--
	if !errors.Is(err, ErrNoSegment) || l.Err() != nil || l.Space(0, 0) != wal.SpaceNone || votes < 10 {
		t.Fatalf("after %d votes: %v, log %v, space %v", votes, err, l.Err(), l.Space(0, 0))
	}
	mem.SetCapacity(1 << 30)
	must(t, l.Prepare())
	write(t, l, 1, 1000)
	must(t, l.Close(nil))
	l = reopen(t, cfg)
	if st := l.State(); st.Term != wal.Term(votes) || l.FlushLSN() != 0x1000+wal.LSN(total+1000) {
		t.Fatalf("term %d, end %v after %d votes and %d bytes", st.Term, l.FlushLSN(), votes, total+1000)
	}
}

// When the disk has space again, a prepared spare becomes an ordinary segment.
func TestPreparedSpareIsUpgraded(t *testing.T) {
	mem := vfs.NewMem()
	cfg := testConfig(mem)
	var err error
	cfg.Spares, err = NewSpares(mem, "data/spare", cfg.FirstSegmentBytes)
	must(t, err)
	must(t, cfg.Spares.Fill(1))
	must(t, Create(cfg, testState()))
	l, err := Open(cfg)
	must(t, err)
	mem.SetCapacity(0)
	if err := l.Prepare(); !IsNoSpace(err) {
		t.Fatal(err)
	}
	if l.Space(0, 0) != wal.SpaceOpen || l.Space(1, 1) != wal.SpaceNone || !l.NeedsPrepare() {
		t.Fatalf("space for state %v, for data %v", l.Space(0, 0), l.Space(1, 1))
	}
	mem.SetCapacity(1 << 30)
	must(t, l.Prepare())
	if n, err := cfg.Spares.Count(); n != 1 || err != nil || l.Space(1, 1) != wal.SpaceOpen || l.NeedsPrepare() {
		t.Fatalf("%d spares, %v; space for data %v", n, err, l.Space(1, 1))
	}
}

// Trimmed segments are recycled under new numbers and what was in them never comes back.
func TestTrimRecycles(t *testing.T) {
	mem := vfs.NewMem()
	cfg := testConfig(mem)
	l := newLog(t, cfg)
	var numbers uint64
	for range 40 {
		for range 5 {
			write(t, l, 1, 900)
		}
		st := l.State()
		st.Commit = l.FlushLSN()
		st.Horizon = st.Commit - 3000
		must(t, makeRoom(l, 0, 0))
		must(t, l.Trim(&st, st.Horizon))
		must(t, l.Reclaim())
		if l.OldestLSN() != st.Horizon {
			t.Fatalf("oldest is %v, want %v", l.OldestLSN(), st.Horizon)
		}
		numbers = l.w.seg.number
	}
	entries, err := mem.ReadDir(testDir)
	must(t, err)
	if len(entries) > 6 || numbers < 40 {
		t.Fatalf("%d files after %d segments", len(entries), numbers)
	}
	end := l.FlushLSN()
	var trimmed *TrimmedError
	if _, _, err := tryReadAll(l, 0x1000, end); !errors.As(err, &trimmed) || trimmed.Oldest != l.OldestLSN() {
		t.Fatalf("below the oldest: %v", err)
	}
	must(t, l.Close(nil))
	l = reopen(t, cfg)
	got, _ := readAll(t, l, l.OldestLSN(), end)
	if !bytes.Equal(got, pattern(1, l.OldestLSN(), int(end-l.OldestLSN()))) {
		t.Fatal("wrong bytes")
	}
}

// A segment that a reader has open is neither recycled nor removed.
func TestReaderPinsItsSegment(t *testing.T) {
	mem := vfs.NewMem()
	l := newLog(t, testConfig(mem))
	for range 20 {
		write(t, l, 1, 900)
	}
	r := l.NewReader(0x1000)
	_, err := r.Next(EndUnknown)
	must(t, err)
	pinned := segmentName(r.seg.number)
	st := l.State()
	st.Commit = l.FlushLSN()
	st.Horizon = st.Commit
	must(t, makeRoom(l, 0, 0))
	must(t, l.Trim(&st, st.Horizon))
	must(t, l.Reclaim())
	must(t, l.Prepare())
	there := func() bool {
		_, err := mem.OpenRead(path.Join(testDir, pinned))
		return err == nil
	}
	if !there() {
		t.Fatal("the pinned segment is gone")
	}
	var trimmed *TrimmedError
	if _, err := r.Next(EndUnknown); !errors.As(err, &trimmed) {
		t.Fatalf("reading on below the oldest: %v", err)
	}
	must(t, r.Close())
	must(t, l.Reclaim())
	if there() {
		t.Fatal("it is still there after the reader left")
	}
}

// A reader that has read what is then cut off hears of it, and one below the cut reads the new bytes.
func TestTruncationUnderReaders(t *testing.T) {
	l := newLog(t, testConfig(vfs.NewMem()))
	for range 8 {
		write(t, l, 1, 900)
	}
	above, below := l.NewReader(0x1000), l.NewReader(0x1000)
	for range 6 {
		_, err := above.Next(EndUnknown)
		must(t, err)
	}
	for range 2 {
		_, err := below.Next(EndUnknown)
		must(t, err)
	}
	st := l.State()
	st.Term = 2
	cut := wal.LSN(0x1000 + 900*3 + 450)
	st.History = wal.History{{Term: 1, LSN: 0x1000}, {Term: 2, LSN: cut}}
	save(t, l, st, cut)
	for range 5 {
		write(t, l, 2, 900)
	}
	var truncated *TruncatedError
	if _, err := above.Next(EndUnknown); !errors.As(err, &truncated) || truncated.End != cut {
		t.Fatalf("the reader above the cut: %v", err)
	}
	var got []byte
	at := below.Position()
	for {
		f, err := below.Next(EndUnknown)
		if err == io.EOF {
			break
		}
		must(t, err)
		got = append(got, f.Chunk.Data...)
	}
	want := append(pattern(1, at, int(cut-at)), pattern(2, cut, int(l.FlushLSN()-cut))...)
	if !bytes.Equal(got, want) {
		t.Fatal("the reader below the cut read wrong bytes")
	}
}

// Looking at a damaged directory needs no permission to write, and writes nothing.
func TestReadOnlyOpenWritesNothing(t *testing.T) {
	v := newVictim(t)
	fault := vfs.NewFault(v.mem)
	fault.Inject(vfs.Rule{Ops: vfs.OpMutating | vfs.OpOpen, Effect: vfs.Fail{Err: syscall.EROFS}})
	cfg := v.cfg
	cfg.FS = fault
	l, err := OpenReadOnly(cfg)
	must(t, err)
	if got, _ := readAll(t, l, modelFirst, EndUnknown); !bytes.Equal(got, v.data) {
		t.Fatal("wrong bytes")
	}
	if err := l.SaveState(&v.st, 0); !errors.Is(err, ErrReadOnly) || l.Space(0, 0) != wal.SpaceNone {
		t.Fatalf("a write to it: %v", err)
	}
	must(t, Inspect(fault, testDir, func(f FileInfo) error { return f.Err }, func(FrameInfo) error { return nil }))
	if n := fault.Count(vfs.OpMutating | vfs.OpOpen); n != 0 {
		t.Fatalf("%d operations that write were tried", n)
	}
}

// Opening to write writes nothing either, until the first write.
func TestOpenWritesNothing(t *testing.T) {
	v := newVictim(t)
	fault := vfs.NewFault(v.mem)
	cfg := v.cfg
	cfg.FS = fault
	l, err := Open(cfg)
	must(t, err)
	must(t, l.Close(&v.st))
	if n := fault.Count(vfs.OpMutating &^ vfs.OpDatasync); n != 0 {
		t.Fatalf("%d operations that write", n)
	}
}
