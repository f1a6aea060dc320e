package storage

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestReadsThatDoNotComeAbout: for want of a descriptor or of memory a read fails
// and says nothing about the log. A node that had run out of descriptors once
// declared its newest log lost, as if the disk had refused to read it.
func TestReadsThatDoNotComeAbout(t *testing.T) {
	for _, cause := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		mem := vfs.NewMem()
		fault := vfs.NewFault(mem)
		cfg := testConfig(fault)
		l := newLog(t, cfg)
		for i := range 30 {
			write(t, l, 1, 500, 300)
			if i == 12 { // a truncation, so that an older segment must be surveyed
				st := l.State()
				save(t, l, st, l.WriteLSN()-300)
			}
		}
		end := l.WriteLSN()
		want, _ := readAll(t, l, 0x1000, end)
		must(t, l.Close(nil))

		// use opens the log, reads all of it and scrubs it, each until it works.
		// Whatever is in the way must not be called damage.
		use := func(i int) {
			again := func(err error) bool {
				if err == nil || errors.Is(err, io.EOF) {
					return false
				}
				if !errors.Is(err, cause) {
					t.Fatalf("%v at read %d: %v", cause, i, err)
				}
				return true
			}
			l, err := Open(cfg)
			if again(err) {
				l, err = Open(cfg)
			}
			must(t, err)
			defer l.Close(nil)
			got, _, err := tryReadAll(l, 0x1000, end)
			if again(err) {
				got, _, err = tryReadAll(l, 0x1000, end)
			}
			if must(t, err); string(got) != string(want) {
				t.Fatalf("%v at read %d: %d bytes, want %d", cause, i, len(got), len(want))
			}
			s := l.NewScrubber()
			for done := false; !done; {
				var damage []Damage
				_, damage, done, err = s.Step(1 << 20)
				if again(err); len(damage) > 0 {
					t.Fatalf("%v at read %d: damage %v", cause, i, damage)
				}
			}
			must(t, s.Close())
			if l.Health() != wal.Healthy || len(l.Damage()) > 0 {
				t.Fatalf("%v at read %d: health %v, damage %v", cause, i, l.Health(), l.Damage())
			}
		}
		fault.ResetCounts()
		use(-1)
		for i := range fault.Count(vfs.OpReads) {
			fault.Clear()
			fault.Inject(vfs.Rule{Ops: vfs.OpReads, Skip: i, Times: 2, Effect: vfs.Fail{Err: cause}})
			use(i)
		}
	}
}
