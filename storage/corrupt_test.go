package storage

import (
	"bytes"
	"errors"
	"fmt"
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
	reported, l, err := v.examine(mem)
	if err != nil {
		t.Fatal(err)
	}
	return reported, l
}

func (v *victim) examine(mem *vfs.Mem) (reported bool, l *Log, _ error) {
	cfg := v.cfg
	cfg.FS = mem
	l, err := Open(cfg)
	var corruption *CorruptionError
	switch {
	case errors.As(err, &corruption):
		reported = true
		if l == nil {
			return true, nil, nil
		}
		if want := map[bool]wal.Health{true: wal.Lost, false: wal.Quarantined}[corruption.StateLost]; l.Health() != want {
			return reported, l, fmt.Errorf("health is %v, want %v", l.Health(), want)
		}
		if l.Space(0, 0) != wal.SpaceNone {
			return reported, l, errors.New("a damaged log takes writes")
		}
	case err != nil:
		return reported, l, err
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
				return reported, l, fmt.Errorf("at %v: damage that ends before it: %v", r.Position(), damage)
			}
			if damage.Damage.End >= l.FlushLSN() {
				return true, l, nil
			}
			r.Skip(damage.Damage.End)
			continue
		case err == io.EOF:
			if !reported && l.FlushLSN() != end {
				return reported, l, fmt.Errorf("the log was shortened in silence: it ends at %v, not %v", l.FlushLSN(), end)
			}
			if !reported || corruption != nil && !corruption.StateLost {
				got, want := l.State(), v.st.Clone()
				want.Commit, want.Horizon = got.Commit, got.Horizon
				if !reflect.DeepEqual(got, want) {
					return reported, l, fmt.Errorf("the state changed in silence: %+v, want %+v", got, want)
				}
			}
			return reported, l, nil
		case err != nil:
			return reported, l, err
		}
		from := int(f.Chunk.Begin - modelFirst)
		to := from + len(f.Chunk.Data)
		if to > len(v.data) || !bytes.Equal(f.Chunk.Data, v.data[from:to]) || f.Term != v.terms[from] {
			return reported, l, fmt.Errorf("wrong bytes served in [%v,%v)", f.Chunk.Begin, f.Chunk.End())
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

// TestFlipEveryByte: whatever meaningful byte of a log rots, every byte read is right or
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
			if !covered[file.Name][off] && off%16 != 0 {
				continue // one in sixteen of the bytes that mean nothing
			}
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

// TestRandomDamage: whatever is overwritten in whatever log, as long as its
// last batch survives: right bytes or a report, and no state but the right one.
func TestRandomDamage(t *testing.T) {
	for seed := range seeds(200) {
		w := newWorld(uint64(seed) + 1_000_000)
		must(t, w.create())
		must(t, w.open())
		for range 20 + w.rng.IntN(60) {
			if err := w.step(); err != nil {
				w.fatal(t, err)
			}
		}
		must(t, makeRoom(w.log, 0, 0))
		w.commit = w.now.end()
		lastOff := w.log.w.off
		if w.log.w.seg == nil {
			lastOff = sectorBytes
		}
		if w.rng.IntN(2) == 0 {
			st := w.now.st.Clone()
			st.Commit = w.commit
			must(t, w.save(st, w.now.end(), w.now.trim))
		} else {
			c := chunk(w.now.st.History.LastTerm(), w.now.end(), 99)
			must(t, w.log.Append(w.now.st.History.LastTerm(), w.commit, []wal.Chunk{c}, false))
			must(t, w.log.Sync())
			w.now = w.now.append(w.now.st.History.LastTerm(), c)
		}
		st := w.now.st
		lastFile, lastEnd := segmentName(w.log.w.seg.number), w.log.w.off
		must(t, w.log.Close(nil))
		v := &victim{mem: w.mem, cfg: w.cfg, st: st, data: w.now.data, terms: w.now.terms}
		files, err := w.mem.ReadDir(testDir)
		must(t, err)
		for range 4 {
			mem := w.mem.CrashWorst()
			for range 1 + w.rng.IntN(2) {
				file := files[len(files)-1-w.rng.IntN(min(3, len(files)))]
				if w.rng.IntN(4) == 0 {
					file = files[w.rng.IntN(len(files))]
				}
				off := w.rng.Int64N(file.Size)
				n := 1 + w.rng.Int64N(4*sectorBytes)
				if file.Name == lastFile && off < lastEnd {
					n = min(n, lastOff-off)
				}
				n = min(n, file.Size-off)
				if n <= 0 {
					continue
				}
				f, err := mem.Open(path.Join(testDir, file.Name))
				must(t, err)
				garbage := make([]byte, n)
				if w.rng.IntN(2) == 0 {
					for i := range garbage {
						garbage[i] = byte(w.rng.Uint32())
					}
				}
				_, err = f.WriteAt(garbage, off)
				must(t, err)
				must(t, f.Datasync())
				w.tracef("overwrite %s [%d,%d)", file.Name, off, off+n)
			}
			_, l, err := v.examine(mem)
			if err != nil {
				w.fatal(t, fmt.Errorf("seed %d: %w", seed, err))
			}
			if l != nil {
				_ = l.Close(nil)
			}
		}
	}
}

// TestCutEveryFile: a segment file that has become shorter is reported.
func TestCutEveryFile(t *testing.T) {
	v := newVictim(t)
	for _, file := range v.files {
		for _, keep := range []int64{0, 300, 512, 600, 1024, file.Size / 2, file.Size - 512} {
			if keep >= file.Size {
				continue
			}
			mem := v.mem.CrashWorst()
			name := path.Join(testDir, file.Name)
			old, err := mem.OpenRead(name)
			must(t, err)
			b := make([]byte, keep)
			if keep > 0 {
				_, err = old.ReadAt(b, 0)
				must(t, err)
			}
			must(t, mem.Remove(name))
			f, err := mem.Create(name)
			must(t, err)
			_, err = f.WriteAt(b, 0)
			must(t, err)
			must(t, f.Datasync())
			must(t, f.Close())
			if reported, _ := v.check(t, mem); !reported {
				t.Errorf("%s was cut to %d bytes and no one noticed", file.Name, keep)
			}
		}
	}
}
