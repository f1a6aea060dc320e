package storage

import (
	"bytes"
	"errors"
	"io"
	"path"
	"reflect"
	"slices"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// victim is a small closed log with everything in it: several segments, one of
// them sealed, one that ended with its process, truncations within and across
// segments, a quiet frame at the end.
type victim struct {
	mem   *vfs.Mem
	cfg   Config
	st    wal.State
	data  []byte
	terms []wal.Term
	files []vfs.Entry
}

func newVictim(t *testing.T) *victim {
	mem := vfs.NewMem()
	w := &world{rng: newWorld(7).rng, mem: mem}
	w.boot()
	must(t, w.create())
	must(t, w.open())
	elect := func(end wal.LSN) {
		st := w.now.st.Clone()
		st.Term++
		st.History = st.History.Extend(st.Term, end)
		st.Commit = w.commit
		must(t, w.save(st, end, w.now.trim))
	}
	batches := func(n int) {
		for range n {
			must(t, w.appendBatch())
		}
	}
	elect(w.now.end())
	batches(3)
	w.commit = w.now.end() - 100
	batches(2)
	elect(w.commit + 50) // within a segment
	batches(5)
	w.commit = w.now.end() - 300
	must(t, w.log.Close(nil)) // the process ends
	must(t, w.open())
	elect(w.commit + 7) // across segments, by a head
	batches(5)
	st := w.now.st.Clone()
	w.commit = w.now.end()
	st.Commit = w.commit
	w.now.st = st
	must(t, w.log.Close(&st))
	v := &victim{mem: mem, cfg: testConfig(mem), st: st, data: w.now.data, terms: w.now.terms}
	var err error
	v.files, err = mem.ReadDir(testDir)
	must(t, err)
	return v
}

// check opens a damaged copy and demands right bytes or a report. It returns
// whether anything was reported.
func (v *victim) check(t *testing.T, mem *vfs.Mem) (reported bool, l *Log) {
	t.Helper()
	cfg := v.cfg
	cfg.FS = mem
	l, err := Open(cfg)
	var corruption *CorruptionError
	switch {
	case errors.As(err, &corruption):
		reported = true
		if l == nil {
			return true, nil
		}
		if want := map[bool]wal.Health{true: wal.Lost, false: wal.Quarantined}[corruption.StateLost]; l.Health() != want {
			t.Fatalf("health is %v, want %v", l.Health(), want)
		}
		if l.Space(0, 0) != wal.SpaceNone {
			t.Fatal("a damaged log takes writes")
		}
	case err != nil:
		t.Fatal(err)
	}
	end := modelFirst + wal.LSN(len(v.data))
	r := l.NewReader(l.OldestLSN())
	defer r.Close()
	for {
		f, err := r.Next(EndUnknown)
		var damage *DamageError
		switch {
		case errors.As(err, &damage):
			reported = true
			if damage.Damage.End <= r.Position() {
				t.Fatalf("at %v: damage that ends before it: %v", r.Position(), damage)
			}
			if damage.Damage.End >= l.FlushLSN() {
				return true, l
			}
			r.Skip(damage.Damage.End)
			continue
		case err == io.EOF:
			if !reported && l.FlushLSN() != end {
				t.Fatalf("the log was shortened in silence: it ends at %v, not %v", l.FlushLSN(), end)
			}
			if !reported || corruption != nil && !corruption.StateLost {
				got, want := l.State(), v.st.Clone()
				want.Commit, want.Horizon = got.Commit, got.Horizon
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("the state changed in silence: %+v, want %+v", got, want)
				}
			}
			return reported, l
		case err != nil:
			t.Fatal(err)
		}
		from := int(f.Chunk.Begin - modelFirst)
		to := from + len(f.Chunk.Data)
		if to > len(v.data) || !bytes.Equal(f.Chunk.Data, v.data[from:to]) || f.Term != v.terms[from] {
			t.Fatalf("wrong bytes served in [%v,%v)", f.Chunk.Begin, f.Chunk.End())
		}
	}
}

func scrub(t *testing.T, l *Log) []Damage {
	t.Helper()
	s := l.NewScrubber()
	defer s.Close()
	var all []Damage
	for {
		_, d, done, err := s.Step(1000)
		must(t, err)
		all = append(all, d...)
		if done {
			return all
		}
	}
}

func TestVictimIsHealthy(t *testing.T) {
	v := newVictim(t)
	reported, l := v.check(t, v.mem)
	if reported || l.Health() != wal.Healthy || len(scrub(t, l)) > 0 {
		t.Fatalf("%v, scrub %v", l.Damage(), scrub(t, l))
	}
	if len(v.files) < 4 {
		t.Fatalf("only %d files", len(v.files))
	}
}

// frameBytesOf returns the offsets in a file that a frame or the header covers.
func (v *victim) coverage(t *testing.T) map[string][]bool {
	covered := map[string][]bool{}
	var name string
	must(t, Inspect(v.mem, testDir, func(f FileInfo) error {
		name = f.Name
		covered[name] = make([]bool, f.Bytes)
		for i := range covered[name][:sectorBytes] {
			covered[name][i] = true
		}
		return f.Err
	}, func(f FrameInfo) error {
		if f.Gap {
			t.Fatalf("%s: a gap at %d in an undamaged log", name, f.Offset)
		}
		for i := f.Offset; i < f.Offset+frameHeaderBytes+int64(f.Bytes); i++ {
			covered[name][i] = true
		}
		return nil
	}))
	return covered
}

// TestFlipEveryByte: whatever byte of a log rots, every byte read is right or
// reported as damaged, nothing acknowledged is silently missing, and a scrub
// finds rot in everything that counts.
func TestFlipEveryByte(t *testing.T) {
	v := newVictim(t)
	covered := v.coverage(t)
	step := int64(1)
	if testing.Short() {
		step = 7
	}
	for i, file := range v.files {
		for off := int64(0); off < file.Size; off += step {
			mem := v.mem.CrashWorst()
			must(t, mem.FlipBit(path.Join(testDir, file.Name), off, uint(off)%8))
			reported, l := v.check(t, mem)
			if t.Failed() {
				t.Fatalf("%s offset %d", file.Name, off)
			}
			if l == nil {
				continue
			}
			newest := i == len(v.files)-1
			if !reported && covered[file.Name][off] && len(scrub(t, l)) == 0 && !(newest && l.w.seq+1 == v.lastSeq(t)) {
				t.Fatalf("%s offset %d: no one noticed", file.Name, off)
			}
			_ = l.Close(nil)
		}
	}
}

// lastSeq is the number of the quiet frame: rot in a log's very last frame
// cannot be told from a batch that was never synced.
func (v *victim) lastSeq(t *testing.T) uint64 {
	var last uint64
	must(t, Inspect(v.mem, testDir, func(FileInfo) error { return nil }, func(f FrameInfo) error {
		last = max(last, f.Seq)
		return nil
	}))
	return last
}

// TestLoseEveryFile: a segment that is gone is reported.
func TestLoseEveryFile(t *testing.T) {
	v := newVictim(t)
	for i, file := range v.files {
		mem := v.mem.CrashWorst()
		must(t, mem.Remove(path.Join(testDir, file.Name)))
		reported, _ := v.check(t, mem)
		if !reported && i < len(v.files)-1 {
			t.Errorf("%s was removed and no one noticed", file.Name)
		}
	}
}

// TestZeroEverySector: a sector of zeroes in place of what was there.
func TestZeroEverySector(t *testing.T) {
	v := newVictim(t)
	covered := v.coverage(t)
	for i, file := range v.files {
		for off := int64(0); off < file.Size; off += sectorBytes {
			mem := v.mem.CrashWorst()
			f, err := mem.Open(path.Join(testDir, file.Name))
			must(t, err)
			_, err = f.WriteAt(zeroes[:], off)
			must(t, err)
			must(t, f.Datasync())
			must(t, f.Close())
			reported, l := v.check(t, mem)
			if l == nil {
				continue
			}
			counts := slices.Contains(covered[file.Name][off:off+sectorBytes], true)
			newest := i == len(v.files)-1
			if !reported && counts && len(scrub(t, l)) == 0 && !(newest && l.w.seq+1 == v.lastSeq(t)) {
				t.Errorf("%s sector %d: no one noticed", file.Name, off/sectorBytes)
			}
		}
	}
}

// TestReadErrors: a page that the device refuses to read is damage, not the end.
func TestReadErrors(t *testing.T) {
	v := newVictim(t)
	for i, file := range v.files {
		fault := vfs.NewFault(v.mem.CrashWorst())
		fault.Inject(vfs.Rule{Ops: vfs.OpReads, Name: file.Name, Effect: vfs.Fail{Err: io.ErrUnexpectedEOF}})
		cfg := v.cfg
		cfg.FS = fault
		l, err := Open(cfg)
		var corruption *CorruptionError
		if !errors.As(err, &corruption) {
			t.Errorf("file %d unreadable: %v", i, err)
		}
		if l != nil {
			_ = l.Close(nil)
		}
	}
}
