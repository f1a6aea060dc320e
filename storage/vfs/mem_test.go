package vfs

import (
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
)

// Space runs out by pages, comes back with the last of name and handle, and
// what is already there can always be overwritten.
func TestMemCapacity(t *testing.T) {
	m := newMemWith(t, "/a")
	m.SetCapacity(3 * pageBytes)
	free := func(want uint64) {
		t.Helper()
		if got, err := m.FreeBytes("/a"); err != nil || got != want*pageBytes {
			t.Fatalf("%d bytes free (%v), want %d pages", got, err, want)
		}
	}
	f := openForTest(t, m, "/a/f")
	free(3)
	n, err := f.WriteAt(make([]byte, 5*pageBytes), 100)
	if !errors.Is(err, syscall.ENOSPC) || n != 3*pageBytes-100 {
		t.Fatalf("wrote %d bytes, %v; want as much as 3 pages take and ENOSPC", n, err)
	}
	if size, _ := f.Size(); size != 3*pageBytes {
		t.Errorf("size %d after the short write, want %d", size, 3*pageBytes)
	}
	must(t, f.WritevAt([][]byte{make([]byte, 3*pageBytes)}, 0))
	must(t, f.Datasync())
	free(0)
	if got, err := m.CrashKeepAll().FreeBytes("/"); err != nil || got != 0 {
		t.Errorf("the clone has %d bytes free, %v; want 0", got, err)
	}
	if got, err := m.CrashWorst().FreeBytes("/"); err != nil || got != 3*pageBytes {
		t.Errorf("the clone without the file has %d bytes free, %v; want all", got, err)
	}
	g := openForTest(t, m, "/a/g")
	if err := g.WritevAt([][]byte{{1}}, 0); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write to a full disk: %v, want ENOSPC", err)
	}
	must(t, m.Remove("/a/f"))
	free(0)
	must(t, f.Close())
	free(3)
	must(t, g.WritevAt([][]byte{{1}}, 0))
	free(2)
	must(t, m.Rename("/a/g", "/a/h"))
	free(2)
	m.SetCapacity(0)
	free(0)
	must(t, g.WritevAt([][]byte{{2}}, 0))
	m.SetCapacity(3 * pageBytes)
	must(t, m.Remove("/a/h"))
	m.Restart() // the handle is gone, and the space with it
	free(3)
}

func TestMemFlipBit(t *testing.T) {
	m := newMemWith(t, "/a")
	f := openForTest(t, m, "/a/f")
	must(t, m.SyncDir("/a"))
	must(t, f.WritevAt([][]byte{make([]byte, 2*sectorBytes)}, 0))
	must(t, f.Datasync())
	must(t, f.WritevAt([][]byte{{0xff}}, sectorBytes)) // the second sector is dirty

	before := m.CrashWorst()
	must(t, m.FlipBit("/a/f", 1, 3))
	must(t, m.FlipBit("/a/f", sectorBytes+1, 0))
	must(t, m.FlipBit("/a/f", sectorBytes+2, 0))
	at := func(disk *Mem, off int) byte { return readFile(t, disk, "/a/f")[off] }
	if at(m, 1) != 1<<3 || at(m.CrashWorst(), 1) != 1<<3 {
		t.Error("the damage of a clean sector does not show, or does not last")
	}
	if at(m, sectorBytes+1) != 0 || at(m.CrashWorst(), sectorBytes+1) != 1 {
		t.Error("the damage under a dirty sector shows too early, or is not there")
	}
	must(t, f.Datasync())
	if at(m.CrashWorst(), sectorBytes+1) != 0 {
		t.Error("the sync did not overwrite the damage")
	}
	if at(before, 1) != 0 {
		t.Error("a clone from before is damaged as well")
	}
	for name, err := range map[string]error{
		"missing":   m.FlipBit("/a/x", 0, 0),
		"directory": m.FlipBit("/a", 0, 0),
		"beyond":    m.FlipBit("/a/f", 2*sectorBytes, 0),
		"bit":       m.FlipBit("/a/f", 0, 8),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Readers, one writer per file, and crashes at the same time; for the race detector.
func TestMemConcurrently(t *testing.T) {
	m := newMemWith(t, "/a")
	var all sync.WaitGroup
	for i := range 4 {
		f := openForTest(t, m, "/a/"+string(rune('a'+i)))
		must(t, m.SyncDir("/a"))
		all.Go(func() {
			for n := range 200 {
				if err := f.WritevAt([][]byte{make([]byte, 700), {byte(n)}}, int64(n)*300); err != nil {
					t.Error(err)
				}
				if err := f.Datasync(); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			p := make([]byte, 2000)
			for range 200 {
				if _, err := f.ReadAt(p, 0); err != nil && p[0] != 0 {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		rng := rngOf(1)
		for range 100 {
			clone := m.Crash(rng)
			g, err := clone.Open("/a/a")
			if err != nil {
				t.Error(err)
				return
			}
			if err := g.WritevAt([][]byte{make([]byte, 100)}, 0); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
}

// One step of the simulator's storage: a batch, a sync, and the question what
// the worst crash would leave.
func BenchmarkMemStepAndWorstCrash(b *testing.B) {
	m := newMemWith(b, "/a")
	var files []File
	for i := range 20 {
		f := openForTest(b, m, "/a/"+string(rune('a'+i)))
		must(b, f.WritevAt([][]byte{make([]byte, 64<<10)}, 0))
		must(b, f.Datasync())
		files = append(files, f)
	}
	must(b, m.SyncDir("/a"))
	batch := [][]byte{make([]byte, 512), make([]byte, 1024)}
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		f := files[rng.IntN(len(files))]
		must(b, f.WritevAt(batch, rng.Int64N(120)*512))
		must(b, f.Datasync())
		m.CrashWorst()
	}
}

func BenchmarkMemRandomCrash(b *testing.B) {
	m := newMemWith(b, "/a")
	f := openForTest(b, m, "/a/f")
	must(b, m.SyncDir("/a"))
	must(b, f.WritevAt([][]byte{make([]byte, 64<<10)}, 0))
	must(b, f.Datasync())
	must(b, f.WritevAt([][]byte{make([]byte, 8<<10)}, 512))
	rng := rngOf(1)
	b.ReportAllocs()
	for b.Loop() {
		m.Crash(rng)
	}
}
