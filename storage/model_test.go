package storage

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// model is a log as a naive person would write it: a slice of bytes with their
// terms, and a state.
type model struct {
	data  []byte // from testState().FirstLSN on
	terms []wal.Term
	st    wal.State
	trim  wal.LSN
}

const modelFirst = wal.LSN(0x1000)

func (m model) end() wal.LSN { return modelFirst + wal.LSN(len(m.data)) }

func (m model) append(term wal.Term, c wal.Chunk) model {
	m.data = append(slices.Clone(m.data), c.Data...)
	m.terms = slices.Clone(m.terms)
	for range c.Data {
		m.terms = append(m.terms, term)
	}
	return m
}

func (m model) cut(end wal.LSN) model {
	n := int(end - modelFirst)
	m.data, m.terms = slices.Clone(m.data[:n]), slices.Clone(m.terms[:n])
	return m
}

// world drives a log and a model with the same operations, through crashes.
type world struct {
	rng   *rand.Rand
	mem   *vfs.Mem
	fault *vfs.Fault
	cfg   Config
	log   *Log

	now    model   // what has been acknowledged
	maybe  []model // what a crash may leave besides
	commit wal.LSN // announced
	saved  wal.LSN // of that, what an acknowledged batch carried
	trace  []string
	inject *vfs.Injection // a fault in force, if any
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), mem: vfs.NewMem()}
	w.boot()
	return w
}

// boot is the start of a process on the disk.
func (w *world) boot() {
	w.inject = nil
	w.fault = vfs.NewFault(w.mem)
	w.cfg = testConfig(w.fault)
	w.cfg.Rand = newSeed(byte(w.rng.Uint32()))
}

func (w *world) create() error {
	if err := w.fault.MkdirAll("data"); err != nil {
		return err
	}
	w.now = model{st: testState(), trim: modelFirst}
	w.commit, w.saved = modelFirst, modelFirst
	return Create(w.cfg, testState())
}

func (w *world) tracef(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// step does one random operation. An error is the disk's.
func (w *world) step() error {
	w.maybe = nil
	l, now := w.log, w.now
	switch x := w.rng.IntN(100); {
	case x < 50:
		return w.appendBatch()
	case x < 58: // vote
		st := now.st.Clone()
		st.Term++
		st.VotedFor = wal.ProposerID{byte(st.Term)}
		st.Commit = w.commit
		return w.save(st, now.end(), now.trim)
	case x < 68: // election, mostly with a truncation
		st := now.st.Clone()
		end := w.commit + wal.LSN(w.rng.Uint64N(uint64(now.end()-w.commit)+1))
		st.Term += wal.Term(w.rng.IntN(2) + 1)
		st.VotedFor = wal.ProposerID{byte(st.Term)}
		st.History = st.History.Extend(st.Term, end)
		st.History = st.History[max(0, len(st.History)-5):]
		st.Commit = w.commit
		return w.save(st, end, now.trim)
	case x < 74:
		w.commit += wal.LSN(w.rng.Uint64N(uint64(now.end()-w.commit) + 1))
		return nil
	case x < 80: // trim
		st := now.st.Clone()
		st.Commit = w.commit
		st.Horizon += wal.LSN(w.rng.Uint64N(uint64(w.commit-st.Horizon) + 1))
		before := now.trim + wal.LSN(w.rng.Uint64N(uint64(st.Horizon-now.trim)+1))
		if before <= now.trim {
			return nil
		}
		return w.save(st, now.end(), before)
	case x < 84:
		return l.Prepare()
	case x < 87:
		return l.Reclaim()
	case x < 90:
		l.Idle()
		return nil
	case x < 93:
		if err := makeRoom(l, 0, 0); err != nil {
			return err
		}
		w.tracef("seal")
		if l.w.seg == nil || l.prepared == nil {
			return nil
		}
		if err := l.Seal(); err != nil {
			return err
		}
		return l.Sync()
	case x < 96: // clean restart
		w.tracef("close and open")
		st := now.st.Clone()
		st.Commit = w.commit
		quiet := now
		quiet.st = st
		w.maybe = []model{quiet}
		if makeRoom(l, 0, 0) != nil {
			return l.Close(nil)
		}
		if err := l.Close(&st); err != nil {
			return err
		}
		if err := w.open(); err != nil {
			return err
		}
		return nil
	default:
		_, _, err := tryReadAll(l, now.trim, now.end())
		return err
	}
}

func (w *world) appendBatch() error {
	term := w.now.st.History.LastTerm()
	var chunks []wal.Chunk
	next, total := w.now, 0
	for range 1 + w.rng.IntN(4) {
		n := 1 + w.rng.IntN(400)
		if w.rng.IntN(10) == 0 {
			n = w.rng.IntN(2048) + 1
		}
		if total+n > 3000 {
			break
		}
		c := chunk(term, next.end(), n)
		// Bytes that differ between terms and between lives, so that no stale byte passes.
		w.rng.Uint64()
		for i := range c.Data {
			c.Data[i] ^= byte(w.rng.Uint32())
		}
		c.CRC = wal.Checksum(c.Data)
		chunks = append(chunks, c)
		next = next.append(term, c)
		total += n
		w.maybe = append(w.maybe, next)
	}
	if len(chunks) == 0 {
		return nil
	}
	maybe := w.maybe
	w.maybe = nil
	if err := makeRoom(w.log, len(chunks), total); err != nil {
		return err
	}
	w.maybe = maybe
	seal := w.log.w.seg != nil && w.log.prepared != nil && w.rng.IntN(10) == 0
	w.tracef("append %d chunks up to %v, term %d, seal %v", len(chunks), next.end(), term, seal)
	if err := w.log.Append(term, w.commit, chunks, seal); err != nil {
		return err
	}
	if err := w.log.Sync(); err != nil {
		return err
	}
	w.now, w.maybe, w.saved = next, nil, w.commit
	return nil
}

func (w *world) save(st wal.State, end, trim wal.LSN) error {
	if err := makeRoom(w.log, 0, 0); err != nil {
		return err
	}
	w.tracef("save term %d end %v (of %v) trim %v commit %v", st.Term, end, w.now.end(), trim, st.Commit)
	next := w.now.cut(end)
	next.st, next.trim = st, trim
	w.maybe = []model{next}
	if trim > w.now.trim {
		if err := w.log.Trim(&st, trim); err != nil {
			return err
		}
	} else {
		if err := w.log.SaveState(&st, end); err != nil {
			return err
		}
		if err := w.log.Sync(); err != nil {
			return err
		}
	}
	w.now, w.maybe = next, nil
	return nil
}

// open opens the log and checks that it is one of the possible ones, which
// from then on is the only one.
func (w *world) open() error {
	l, err := Open(w.cfg)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	w.log = l
	struck := 0
	if w.inject != nil {
		struck = w.inject.Strikes()
	}
	var reasons []error
	for _, m := range append([]model{w.now}, w.maybe...) {
		err := w.matches(l, m)
		if err == nil {
			m.st.Commit = l.State().Commit
			w.now, w.maybe = m, nil
			w.tracef("opened at %v, term %d", m.end(), m.st.Term)
			return nil
		}
		reasons = append(reasons, err)
	}
	if w.inject != nil && w.inject.Strikes() > struck {
		return errors.Join(reasons...) // it was the checks that the fault struck
	}
	return &mismatchError{errors.Join(reasons...)}
}

type mismatchError struct{ error }

func (w *world) matches(l *Log, m model) error {
	if l.FlushLSN() != m.end() || l.OldestLSN() != m.trim {
		return fmt.Errorf("log is [%v, %v), not [%v, %v)", l.OldestLSN(), l.FlushLSN(), m.trim, m.end())
	}
	got, want := l.State(), m.st.Clone()
	if got.Commit < max(want.Commit, w.saved) || got.Commit > w.commit {
		return fmt.Errorf("commit is %v, saved was %v and announced %v", got.Commit, want.Commit, w.commit)
	}
	got.Commit = want.Commit
	if len(want.History) == 0 {
		want.History = nil
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("state is %+v, not %+v", got, want)
	}
	data, terms, err := tryReadAll(l, m.trim, m.end())
	if err != nil {
		return err
	}
	skip := m.trim - modelFirst
	if !bytes.Equal(data, m.data[skip:]) || !slices.Equal(terms, m.terms[skip:]) {
		return errors.New("other bytes or terms")
	}
	// No crash is damage: neither a reader nor a scrub may take it for that.
	scrubber := l.NewScrubber()
	defer scrubber.Close()
	for done := false; !done; {
		if _, _, done, err = scrubber.Step(1 << 20); err != nil {
			return err
		}
	}
	if l.Health() != wal.Healthy {
		return fmt.Errorf("a crash was taken for damage: %v", l.Damage())
	}
	return nil
}

func (w *world) fatal(t *testing.T, err error) {
	t.Helper()
	for _, s := range w.trace[max(0, len(w.trace)-30):] {
		t.Log(s)
	}
	t.Fatal(err)
}

var seedsFlag = flag.Int("seeds", 0, "random logs to try in each of TestModel and TestRandomDamage (0: a few hundred)")

func seeds(usual int) int {
	if *seedsFlag > 0 {
		return *seedsFlag
	}
	if testing.Short() {
		return usual / 4
	}
	return usual
}

// TestModel: whatever is appended, truncated, trimmed, crashed and opened
// again, the log holds what the model holds, and after a crash nothing but a
// part of the one batch that was under way besides.
func TestModel(t *testing.T) {
	for seed := range seeds(100) {
		w := newWorld(uint64(seed))
		must(t, w.create())
		if err := w.open(); err != nil {
			w.fatal(t, err)
		}
		for range 6 { // lives
			if len(w.now.data) > 100_000 {
				break
			}
			w.fault.CrashAfter(w.fault.Mutations() + w.rng.IntN(120))
			lostSync := false
			if w.rng.IntN(4) == 0 {
				w.fault.Inject(vfs.Rule{Ops: vfs.OpDatasync, Skip: w.rng.IntN(20), Times: 1, Rand: w.rng, Effect: vfs.LoseSync{}})
				lostSync = true
			}
			var err error
			for err == nil {
				err = w.step()
			}
			var mismatch *mismatchError
			if errors.As(err, &mismatch) || !w.fault.Crashed() && !lostSync {
				w.fatal(t, fmt.Errorf("seed %d: %w", seed, err))
			}
			w.tracef("crash: %v", err)
			switch w.rng.IntN(5) {
			case 0: // the process is killed, the machine goes on
				w.mem.Restart()
			case 1:
				w.mem = w.mem.CrashWorst()
			case 2:
				w.mem = w.mem.CrashKeepAll()
			default:
				w.mem = w.mem.Crash(w.rng)
			}
			w.boot()
			if err := w.open(); err != nil {
				w.fatal(t, fmt.Errorf("seed %d: %w", seed, err))
			}
		}
	}
}
