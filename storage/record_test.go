package storage

import (
	"errors"
	"path"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// rotten is a closed log whose second segment has a flipped bit in its data,
// which opening cannot see.
func rotten(t *testing.T) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	l := newLog(t, testConfig(mem))
	write(t, l, 1, 1500, 1500)
	write(t, l, 1, 1500)
	must(t, l.Close(nil))
	l = reopen(t, testConfig(mem))
	write(t, l, 1, 700)
	st := l.State()
	must(t, l.Close(&st))
	must(t, mem.FlipBit(path.Join(testDir, segmentName(2)), 2300, 1))
	return mem
}

// recordFound opens the log, scrubs it and records what that found.
func recordFound(fsys vfs.FS) ([]Damage, error) {
	l, err := Open(testConfig(fsys))
	if err != nil {
		return nil, err
	}
	defer l.Close(nil)
	s := l.NewScrubber()
	defer s.Close()
	_, damage, _, err := s.Step(1 << 20)
	if err != nil {
		return nil, err
	}
	return damage, l.RecordDamage()
}

func TestRecordedDamageIsKnownAtOpening(t *testing.T) {
	mem := rotten(t)
	damage, err := recordFound(mem)
	must(t, err)
	if len(damage) != 1 {
		t.Fatalf("the test wants one damage, got %v", damage)
	}
	for _, open := range []func(Config) (*Log, error){Open, OpenReadOnly} {
		l, err := open(testConfig(mem.CrashWorst()))
		var corrupt *CorruptionError
		if !errors.As(err, &corrupt) || corrupt.StateLost || l.Health() != wal.Quarantined {
			t.Fatalf("opened with %v", err)
		}
		if got := l.Damage(); len(got) != 1 || got[0] != damage[0] {
			t.Errorf("damage %v, recorded was %v", got, damage)
		}
		if l.Space(0, 0) != wal.SpaceNone {
			t.Error("a damaged log takes writes")
		}
		must(t, l.RecordDamage()) // says nothing new
		must(t, l.Close(nil))
	}
}

func TestRecordIsCompleteOrAbsent(t *testing.T) {
	everyCrash(t, func() *vfs.Mem { return rotten(t) }, func(fsys vfs.FS) error {
		_, err := recordFound(fsys)
		return err
	}, func(at string, left *vfs.Mem, done bool) {
		l, err := Open(testConfig(left))
		var corrupt *CorruptionError
		if errors.As(err, &corrupt) && !corrupt.StateLost {
			return
		}
		if err != nil || done {
			t.Fatalf("%s: %v", at, err)
		}
		must(t, l.Close(nil))
		if damage, err := recordFound(left); err != nil || len(damage) != 1 {
			t.Fatalf("%s: found again %v, %v", at, damage, err)
		}
	})
}

// The last batch of a log has no later one that proves it. Rotten, it looks torn;
// but a scrub saw it when it was durable, and a vote may be in it.
func TestRecordProvesTheLastBatch(t *testing.T) {
	mem := vfs.NewMem()
	l := newLog(t, testConfig(mem))
	write(t, l, 1, 1500)
	st := l.State()
	st.Term = 9
	save(t, l, st, l.WriteLSN())
	state := l.w.off - sectorBytes // the vote's batch is one sector
	name := path.Join(testDir, segmentName(l.w.seg.number))
	must(t, mem.FlipBit(name, state+100, 1))
	damage := scrub(t, l)
	if len(damage) == 0 {
		t.Fatal("the scrub found nothing")
	}
	torn, err := Open(testConfig(mem.CrashWorst()))
	if err != nil || torn.State().Term == 9 {
		t.Fatalf("the test wants a vote that is gone without a trace: %v", err)
	}
	must(t, l.RecordDamage())
	again, err := Open(testConfig(mem.CrashWorst()))
	var corrupt *CorruptionError
	if !errors.As(err, &corrupt) || !corrupt.StateLost || again.Health() != wal.Lost {
		t.Fatalf("a vote is lost and opening says %v", err)
	}
}

// A record that is rotten itself cannot say any more how far the log went.
func TestRottenRecord(t *testing.T) {
	mem := rotten(t)
	_, err := recordFound(mem)
	must(t, err)
	for off := int64(0); off < 40; off += 3 {
		left := mem.CrashWorst()
		must(t, left.FlipBit(path.Join(testDir, damageFile), off, 2))
		l, err := Open(testConfig(left))
		var corrupt *CorruptionError
		if !errors.As(err, &corrupt) || !corrupt.StateLost || l.Health() != wal.Lost {
			t.Fatalf("flipped at %d: %v", off, err)
		}
	}
}

func TestRecordIsNoSegment(t *testing.T) {
	mem := rotten(t)
	_, err := recordFound(mem)
	must(t, err)
	must(t, Inspect(mem, testDir, func(f FileInfo) error { return f.Err }, nil))
	if st, err := NewRebuild(testConfig(mem), testState(), modelFirst); err != nil || st.Abort() != nil {
		t.Error(err)
	}
}
