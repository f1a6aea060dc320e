package storage

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
)

// script does a fixed sequence of random operations.
func (w *world) script(steps int) error {
	if err := w.create(); err != nil {
		return err
	}
	if err := w.open(); err != nil {
		return err
	}
	for range steps {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// TestEveryFault: each operation in turn fails in each way. Whatever becomes
// of the call, nothing acknowledged is lost and the log that is opened afterwards is right.
func TestEveryFault(t *testing.T) {
	const seed, steps = 42, 60
	clean := newWorld(seed)
	if err := clean.script(steps); err != nil {
		clean.fatal(t, err)
	}
	for _, kind := range []struct {
		name   string
		ops    vfs.Op
		effect vfs.Effect
	}{
		{"EIO", vfs.OpAll &^ vfs.OpClose, vfs.Fail{Err: syscall.EIO}},
		{"ENOSPC", vfs.OpCreate | vfs.OpWrites | vfs.OpDatasync | vfs.OpRename, vfs.Fail{Err: syscall.ENOSPC}},
		{"short write", vfs.OpWrites, vfs.ShortWrite{Bytes: 700, Err: syscall.EIO}},
		{"lost sync", vfs.OpDatasync, vfs.LoseSync{}},
		{"EMFILE", vfs.OpOpens | vfs.OpReadDir, vfs.Fail{Err: syscall.EMFILE}},
	} {
		stride := 1
		if testing.Short() {
			stride = 5
		}
		for i := 0; i < clean.fault.Count(kind.ops); i += stride {
			for mode := range 3 {
				w := newWorld(seed)
				w.inject = w.fault.Inject(vfs.Rule{Ops: kind.ops, Skip: i, Times: 1, Effect: kind.effect})
				err := w.script(steps)
				var mismatch *mismatchError
				if errors.As(err, &mismatch) {
					w.fatal(t, fmt.Errorf("%s at operation %d: %w", kind.name, i, err))
				}
				if w.log == nil {
					continue // not created, or not opened once
				}
				switch mode {
				case 0:
					w.mem.Restart()
				case 1:
					w.mem = w.mem.CrashWorst()
				case 2:
					w.mem = w.mem.Crash(rand.New(rand.NewPCG(seed, uint64(i))))
				}
				w.boot()
				if err := w.open(); err != nil {
					w.fatal(t, fmt.Errorf("after %s at operation %d, mode %d: %w", kind.name, i, mode, err))
				}
			}
		}
	}
}

// A damaged write is found by whoever reads it: never served, never the end.
func TestLyingDisk(t *testing.T) {
	for _, kind := range []struct {
		name   string
		effect vfs.Effect
	}{
		{"flipped bit", vfs.FlipWrite{}}, {"dropped write", vfs.DropWrite{}}, {"misdirected write", vfs.MisdirectWrite{By: 1024}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			for i := range 40 {
				mem := vfs.NewMem()
				fault := vfs.NewFault(mem)
				cfg := testConfig(fault)
				l := newLog(t, cfg)
				rng := rand.New(rand.NewPCG(uint64(i), 3))
				fault.Inject(vfs.Rule{Ops: vfs.OpWritevAt, Skip: i, Times: 1, Rand: rng, Effect: kind.effect})
				for range 60 {
					write(t, l, 1, 200, 150)
				}
				st, end := l.State(), l.WriteLSN()
				save(t, l, st, end)
				must(t, l.Close(nil))
				l, err := Open(cfg)
				var corruption *CorruptionError
				if errors.As(err, &corruption) && l == nil {
					continue
				}
				if err != nil && corruption == nil {
					t.Fatal(err)
				}
				r := l.NewReader(0x1000)
				reported := corruption != nil
				for {
					f, err := r.Next(EndUnknown)
					if err == io.EOF {
						break
					}
					var damage *DamageError
					if errors.As(err, &damage) {
						reported = true
						if damage.Damage.End >= l.FlushLSN() {
							break
						}
						r.Skip(damage.Damage.End)
						continue
					}
					must(t, err)
					if string(f.Chunk.Data) != string(pattern(1, f.Chunk.Begin, len(f.Chunk.Data))) {
						t.Fatalf("write %d: wrong bytes at %v", i, f.Chunk.Begin)
					}
				}
				if l.FlushLSN() != end && !reported {
					t.Fatalf("write %d: the log ends at %v, not %v, and nothing was reported", i, l.FlushLSN(), end)
				}
			}
		})
	}
}
