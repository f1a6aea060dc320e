package storage

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// everyCrash runs do on copies of a disk that end after each operation in
// turn, and hands check what each kind of power cut, or a mere restart of the
// process, leaves. It returns how many there were.
func everyCrash(t *testing.T, disk func() *vfs.Mem, do func(vfs.FS) error, check func(at string, left *vfs.Mem, done bool)) {
	t.Helper()
	count := vfs.NewFault(disk())
	must(t, do(count))
	n := count.Mutations()
	if n < 5 {
		t.Fatalf("only %d operations", n)
	}
	for i := range n + 1 {
		for mode := range 10 {
			mem := disk()
			fault := vfs.NewFault(mem)
			if i < n {
				fault.CrashAfter(i)
			}
			err := do(fault)
			if (err == nil) != (i == n) {
				t.Fatalf("crash after %d of %d operations: %v", i, n, err)
			}
			_ = fault.CloseAll()
			switch mode {
			case 0:
				mem.Restart()
			case 1:
				mem = mem.CrashWorst()
			case 2:
				mem = mem.CrashKeepAll()
			case 6, 7, 8, 9:
				// The next process does not get far either, and then the power fails.
				mem.Restart()
				again := vfs.NewFault(mem)
				again.CrashAfter(1 + (i+mode)%9)
				_ = Sweep(again, "data/tenant")
				mem = mem.Crash(rand.New(rand.NewPCG(uint64(i), uint64(mode))))
			default:
				mem = mem.Crash(rand.New(rand.NewPCG(uint64(i), uint64(mode))))
			}
			check(fmt.Sprintf("crash after %d of %d operations, mode %d", i, n, mode), mem, err == nil)
		}
	}
}

func names(t *testing.T, fsys vfs.FS, dir string) []string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	must(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

func TestCreateIsCompleteOrAbsent(t *testing.T) {
	disk := func() *vfs.Mem {
		mem := vfs.NewMem()
		must(t, mem.MkdirAll("data/tenant"))
		must(t, mem.SyncDir("."))
		must(t, mem.SyncDir("data"))
		return mem
	}
	do := func(fsys vfs.FS) error { return Create(testConfig(fsys), testState()) }
	everyCrash(t, disk, do, func(at string, left *vfs.Mem, done bool) {
		must(t, Sweep(left, "data/tenant"))
		if got := names(t, left, "data/tenant"); len(got) > 1 || len(got) == 1 && got[0] != "timeline" {
			t.Fatalf("%s: after the sweep there is %v", at, got)
		}
		l, err := Open(testConfig(left))
		switch {
		case errors.Is(err, ErrNotFound) && !done:
			must(t, Create(testConfig(left), testState()))
			l, err = Open(testConfig(left))
		case errors.Is(err, ErrNotFound):
			t.Fatalf("%s: created and gone", at)
		}
		if err != nil || l.State().Creation != testState().Creation || l.FlushLSN() != 0x1000 {
			t.Fatalf("%s: %v", at, err)
		}
		if err := Create(testConfig(left), testState()); !errors.Is(err, ErrExists) {
			t.Fatalf("%s: creating it again: %v", at, err)
		}
	})
}

func TestDeleteIsWholeOrNothing(t *testing.T) {
	v := newVictim(t)
	do := func(fsys vfs.FS) error { return Delete(fsys, testDir) }
	everyCrash(t, func() *vfs.Mem { return v.mem.CrashWorst() }, do, func(at string, left *vfs.Mem, done bool) {
		must(t, Sweep(left, "data/tenant"))
		got := names(t, left, "data/tenant")
		if len(got) == 0 {
			return
		}
		if done || len(got) != 1 || got[0] != "timeline" {
			t.Fatalf("%s: after the sweep there is %v", at, got)
		}
		if reported, _ := v.check(t, left); reported {
			t.Fatalf("%s: half of it is left", at)
		}
	})
	if err := Delete(v.mem, "data/tenant/other"); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting what is not there: %v", err)
	}
}

// A damaged log is replaced by one rebuilt from elsewhere: at any crash either
// of them is there whole, after the sweep, and the damaged one is kept aside.
func TestRebuildReplacesWholeOrNotAtAll(t *testing.T) {
	v := newVictim(t)
	must(t, v.mem.FlipBit(path.Join(testDir, v.files[3].Name), 2200, 1))
	if reported, _ := v.check(t, v.mem); !reported {
		t.Fatal("the test wants damage")
	}
	st := v.st.Clone()
	st.Commit = modelFirst + wal.LSN(len(v.data))
	const from = modelFirst + 700
	do := func(fsys vfs.FS) error {
		r, err := NewRebuild(testConfig(fsys), st, from)
		if err != nil {
			return err
		}
		for at := from; at < st.Commit; {
			n := min(1500, int(st.Commit-at))
			data := v.data[at-modelFirst:][:n]
			c := wal.Chunk{Begin: at, CRC: wal.Checksum(data), Data: data}
			if err := r.Append(v.terms[at-modelFirst], from, []wal.Chunk{c}); err != nil {
				return err
			}
			at += wal.LSN(n)
		}
		return r.Finish(&st, "a test damaged it")
	}
	everyCrash(t, func() *vfs.Mem { return v.mem.CrashWorst() }, do, func(at string, left *vfs.Mem, done bool) {
		must(t, Sweep(left, "data/tenant"))
		got := names(t, left, "data/tenant")
		if got[0] != "timeline" {
			t.Fatalf("%s: there is %v", at, got)
		}
		if len(got) == 1 {
			if reported, _ := v.check(t, left); !reported || done {
				t.Fatalf("%s: neither the damaged log nor the new one", at)
			}
			return
		}
		if got[1] != "timeline.quarantined" || len(got) > 2 {
			t.Fatalf("%s: there is %v", at, got)
		}
		f, err := left.OpenRead("data/tenant/timeline.quarantined/REASON")
		must(t, err)
		b := make([]byte, 17)
		if _, err := f.ReadAt(b, 0); err != nil || string(b) != "a test damaged it" {
			t.Fatalf("%s: reason %q, %v", at, b, err)
		}
		l, err := Open(testConfig(left))
		must(t, err)
		data, _ := readAll(t, l, from, EndUnknown)
		if l.OldestLSN() != from || l.State().Term != st.Term || !bytes.Equal(data, v.data[700:]) {
			t.Fatalf("%s: wrong log", at)
		}
	})
}

// Spares are complete or absent, too, and taking one leaves it in one of two places.
func TestSparesSurviveCrashes(t *testing.T) {
	disk := func() *vfs.Mem {
		mem := vfs.NewMem()
		must(t, mem.MkdirAll("data"))
		must(t, mem.SyncDir("."))
		return mem
	}
	do := func(fsys vfs.FS) error {
		s, err := NewSpares(fsys, "data/spare", 8<<10)
		if err != nil {
			return err
		}
		return s.Fill(2)
	}
	everyCrash(t, disk, do, func(at string, left *vfs.Mem, done bool) {
		must(t, do(left))
		s, err := NewSpares(left, "data/spare", 8<<10)
		must(t, err)
		if n, err := s.Count(); n != 2 || err != nil {
			t.Fatalf("%s: %d spares, %v", at, n, err)
		}
	})
}

// A process that ends between a rename and the sync of the directory leaves
// names that are there, for the next process, and not durable: what that one writes
// under them must survive a power cut all the same.
func TestNamesFoundAtOpeningAreMadeDurable(t *testing.T) {
	do := func(fsys vfs.FS) error {
		cfg := testConfig(fsys)
		if err := Create(cfg, testState()); err != nil {
			return err
		}
		l, err := Open(cfg)
		if err != nil {
			return err
		}
		defer l.Close(nil)
		return l.Prepare()
	}
	disk := func() *vfs.Mem {
		mem := vfs.NewMem()
		must(t, mem.MkdirAll("data/tenant"))
		must(t, mem.SyncDir("."))
		must(t, mem.SyncDir("data"))
		return mem
	}
	count := vfs.NewFault(disk())
	must(t, do(count))
	for i := range count.Mutations() {
		mem := disk()
		fault := vfs.NewFault(mem)
		fault.CrashAfter(i)
		_ = do(fault)
		mem.Restart()
		cfg := testConfig(mem)
		cfg.Rand = newSeed(byte(i + 2))
		if err := Create(cfg, testState()); err != nil && !errors.Is(err, ErrExists) {
			t.Fatal(err)
		}
		cfg.FS = mem.CrashWorst()
		if _, err := Open(cfg); err != nil {
			t.Fatalf("crash after %d operations: created, or said to exist, and then: %v", i, err)
		}
		cfg.FS = mem
		l := reopen(t, cfg)
		write(t, l, 1, 100)
		cfg.FS = mem.CrashWorst()
		l, err := Open(cfg)
		if err != nil || l.FlushLSN() != 0x1000+100 {
			t.Fatalf("crash after %d operations: what the next process wrote is gone: %v", i, err)
		}
	}
}
