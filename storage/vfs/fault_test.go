package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Which operations a rule strikes.
func TestRuleMatching(t *testing.T) {
	m := newMemWith(t, "/a", "/b")
	tests := []struct {
		name string
		rule Rule
		want string // of the six operations below, x for those struck
	}{
		{"all", Rule{Ops: OpAll}, "xxxxxx"},
		{"by operation", Rule{Ops: OpWrites | OpSyncDir}, "..x..x"},
		{"by last element", Rule{Ops: OpAll, Name: "*.seg"}, ".xxxx."},
		{"by whole name", Rule{Ops: OpAll, Name: "/a/*"}, ".xxx.."},
		{"by directory", Rule{Ops: OpAll, Name: "/b"}, ".....x"},
		{"by new name", Rule{Ops: OpAll, Name: "/b/1.seg"}, "...xx."},
		{"after some", Rule{Ops: OpAll, Skip: 2}, "..xxxx"},
		{"so often", Rule{Ops: OpAll, Skip: 1, Times: 2}, ".xx..."},
		{"counting only matches", Rule{Ops: OpAll, Name: "*.seg", Skip: 1, Times: 1}, "..x..."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := NewFault(m.CrashKeepAll())
			tt.rule.Effect = Stall{Wait: func(Op, string) {}}
			injection := f.Inject(tt.rule)
			got := ""
			did := func(err error) {
				t.Helper()
				must(t, err)
				if n := injection.Strikes(); n > strings.Count(got, "x") {
					got += "x"
				} else {
					got += "."
				}
			}
			did(f.MkdirAll("/a"))
			file, err := f.Create("/a/1.seg")
			did(err)
			did(file.WritevAt([][]byte{{1}}, 0))
			did(f.Rename("/a/1.seg", "/b/1.seg"))
			_, err = file.Size() // the file is where its name is
			did(err)
			did(f.SyncDir("/b"))
			if got != tt.want {
				t.Errorf("struck %s, want %s", got, tt.want)
			}
		})
	}
}

// What each effect leaves in cache and on disk, and what the caller is told.
func TestEffects(t *testing.T) {
	write := func(f File) error {
		return f.WritevAt([][]byte{[]byte("ne"), []byte("w!")}, 4)
	}
	tests := []struct {
		name         string
		rule         Rule
		want         error
		cached, disk string // after a sync
	}{
		{"fail a write", Rule{Ops: OpWrites, Effect: Fail{syscall.EIO}}, syscall.EIO, "oldoldoldold", "oldoldoldold"},
		{"no space", Rule{Ops: OpWritevAt, Effect: Fail{syscall.ENOSPC}}, syscall.ENOSPC, "oldoldoldold", "oldoldoldold"},
		{"short write", Rule{Ops: OpWrites, Effect: ShortWrite{3, syscall.EIO}}, syscall.EIO, "oldonewldold", "oldonewldold"},
		{"short write of all", Rule{Ops: OpWrites, Effect: ShortWrite{99, syscall.ENOSPC}}, syscall.ENOSPC, "oldonew!dold", "oldonew!dold"},
		{"flip", Rule{Ops: OpWrites, Effect: FlipWrite{}}, nil, "oldooew!dold", "oldooew!dold"},
		{"drop", Rule{Ops: OpWrites, Effect: DropWrite{}}, nil, "oldoldoldold", "oldoldoldold"},
		{"misdirect", Rule{Ops: OpWrites, Effect: MisdirectWrite{-3}}, nil, "onew!doldold", "onew!doldold"},
		{"misdirect to nowhere", Rule{Ops: OpWrites, Effect: MisdirectWrite{-30}}, nil, "oldoldoldold", "oldoldoldold"},
		{"lose a sync", Rule{Ops: OpDatasync, Times: 1, Effect: LoseSync{}}, syscall.EIO, "oldonew!dold", "oldoldoldold"},
		{"fail a sync before it begins", Rule{Ops: OpDatasync, Times: 1, Effect: Fail{syscall.EIO}}, syscall.EIO, "oldonew!dold", "oldonew!dold"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemWith(t, "/a")
			f := NewFault(NewFault(m)) // one in front of another, too
			file := openForTest(t, f, "/a/f")
			must(t, f.SyncDir("/a"))
			_, err := file.WriteAt([]byte("oldoldoldold"), 0)
			must(t, err)
			must(t, file.Datasync())

			f.Inject(tt.rule)
			errWrite := write(file)
			errSync := file.Datasync()
			if got := errors.Join(errWrite, errSync); !errors.Is(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			must(t, file.Datasync())
			if got := readFile(t, m, "/a/f"); got != tt.cached {
				t.Errorf("cached %q, want %q", got, tt.cached)
			}
			if got := readFile(t, m.CrashWorst(), "/a/f"); got != tt.disk {
				t.Errorf("on the disk %q, want %q", got, tt.disk)
			}
		})
	}
}

func TestFlipRead(t *testing.T) {
	m := newMemWith(t, "/a")
	writeFile(t, m, "/a/f", "0123456789")
	f := NewFault(m)
	file, err := f.OpenRead("/a/f")
	must(t, err)
	defer file.Close()
	f.Inject(Rule{Ops: OpReadAtUncached, Effect: FlipRead{}})
	f.Inject(Rule{Ops: OpReadAt, Rand: rngOf(1), Effect: FlipRead{}})
	p := make([]byte, 3)
	_, err = file.ReadAtUncached(p, 2)
	must(t, err)
	if string(p) != "334" {
		t.Errorf("got %q, want the lowest bit of the first byte flipped: 334", p)
	}
	for range 10 {
		_, err = file.ReadAt(p, 2)
		must(t, err)
		bits := 0
		for i, b := range p {
			for x := b ^ "234"[i]; x != 0; x &= x - 1 {
				bits++
			}
		}
		if bits != 1 {
			t.Errorf("%d bits flipped, want 1", bits)
		}
	}
	if got := readFile(t, m, "/a/f"); got != "0123456789" {
		t.Errorf("what is stored has become %q", got)
	}
}

// Descriptors run out: nothing new is opened, the open ones work on.
func TestTooManyOpenFiles(t *testing.T) {
	f := NewFault(newMemWith(t, "/a"))
	file := openForTest(t, f, "/a/f")
	injection := f.Inject(Rule{Ops: OpOpens, Effect: Fail{syscall.EMFILE}})
	for name, open := range map[string]func() error{
		"create": func() error { _, err := f.Create("/a/g"); return err },
		"open":   func() error { _, err := f.Open("/a/f"); return err },
		"lock":   func() error { _, err := f.Lock("/a/L"); return err },
	} {
		if err := open(); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("%s: %v, want EMFILE", name, err)
		}
	}
	must(t, file.WritevAt([][]byte{{1}}, 0))
	injection.Remove()
	openForTest(t, f, "/a/g")
}

func TestStallWaitsBeforeTheOperation(t *testing.T) {
	m := newMemWith(t, "/a")
	f := NewFault(m)
	file := openForTest(t, f, "/a/f")
	must(t, f.SyncDir("/a"))
	var atStall string
	f.Inject(Rule{Ops: OpDatasync, Effect: Stall{func(op Op, name string) {
		must(t, file.WritevAt([][]byte{[]byte("B")}, 1)) // the Fault is not locked
		atStall = fmt.Sprintf("%v %s %q", op, name, readFile(t, m.CrashWorst(), "/a/f"))
	}}})
	f.Inject(Rule{Ops: OpDatasync, Skip: 1, Effect: Fail{syscall.EIO}})
	must(t, file.WritevAt([][]byte{[]byte("A")}, 0))
	must(t, file.Datasync())
	if want := `Datasync /a/f ""`; atStall != want {
		t.Errorf("at the stall %s, want %s", atStall, want)
	}
	if got := readFile(t, m.CrashWorst(), "/a/f"); got != "AB" {
		t.Errorf("after it the disk has %q, want AB", got)
	}
	if err := file.Datasync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a stalled operation is not failed by the other rule: %v", err)
	}
}

func TestCountAndObserve(t *testing.T) {
	f := NewFault(newMemWith(t, "/a"))
	file := openForTest(t, f, "/a/f")
	f.ResetCounts()
	var seen []string
	f.Observe(func(op Op, name string) { seen = append(seen, op.String()+" "+name) })
	f.Inject(Rule{Ops: OpDatasync, Skip: 1, Effect: Fail{syscall.EIO}})
	must(t, file.WritevAt([][]byte{{1}}, 0))
	must(t, file.Datasync())
	if err := file.Datasync(); err == nil {
		t.Error("the injected error did not come")
	}
	f.Observe(nil)
	if want := []string{"WritevAt /a/f", "Datasync /a/f", "Datasync /a/f"}; !reflect.DeepEqual(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
	if got := f.Count(OpDatasync); got != 2 {
		t.Errorf("%d syncs counted, want 2 with the failed one", got)
	}
	if got := f.Count(OpOpens | OpNames); got != 0 {
		t.Errorf("%d counted from before the reset", got)
	}
	if got := f.Mutations(); got != 4 {
		t.Errorf("%d mutations, want 4: create, write, two syncs", got)
	}
}

// Every crash of a small run: the file is replaced as a whole or not at all.
func TestCrashAfterEveryMutation(t *testing.T) {
	replace := func(fsys FS) error {
		f, err := fsys.Create("/a/tmp")
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.WritevAt([][]byte{[]byte("new")}, 0); err != nil {
			return err
		}
		if err := f.Datasync(); err != nil {
			return err
		}
		if err := fsys.Rename("/a/tmp", "/a/f"); err != nil {
			return err
		}
		return fsys.SyncDir("/a")
	}
	prepare := func() *Mem {
		m := newMemWith(t, "/a")
		writeFile(t, m, "/a/f", "old")
		must(t, m.SyncDir("/a"))
		return m.CrashKeepAll()
	}
	whole := NewFault(prepare())
	must(t, replace(whole))
	if whole.Mutations() != 5 {
		t.Fatalf("%d mutations, want 5", whole.Mutations())
	}
	seen := map[string]bool{}
	for n := range whole.Mutations() + 1 {
		m := prepare()
		f := NewFault(m)
		f.CrashAfter(n)
		err := replace(f)
		if done := n == whole.Mutations(); done != (err == nil) || !done && !errors.Is(err, ErrCrashed) {
			t.Fatalf("crash after %d: %v", n, err)
		}
		if _, err := f.ReadDir("/a"); !errors.Is(err, ErrCrashed) || !f.Crashed() {
			t.Fatalf("crash after %d: reading goes on: %v", n, err)
		}
		for seed := range uint64(50) {
			got := readFile(t, m.Crash(rngOf(seed)), "/a/f")
			if got != "old" && got != "new" || n == 5 && got != "new" || n < 4 && got != "old" {
				t.Fatalf("crash after %d, seed %d: the file has %q", n, seed, got)
			}
			seen[got] = true
		}
	}
	if !seen["old"] || !seen["new"] {
		t.Errorf("only seen: %v", seen)
	}
}

// After the crash nothing leaks: what the dead process had open can be closed.
func TestCrashedFilesClose(t *testing.T) {
	for name, inner := range map[string]FS{"Mem": newMemWith(t, "/"), "OS": OS{}} {
		t.Run(name, func(t *testing.T) {
			lockName := filepath.Join(t.TempDir(), "LOCK")
			must(t, inner.MkdirAll(filepath.Dir(lockName)))
			f := NewFault(inner)
			lock, err := f.Lock(lockName)
			must(t, err)
			f.CrashAfter(0)
			if err := lock.Close(); !errors.Is(err, ErrCrashed) {
				t.Errorf("Close: %v, want ErrCrashed", err)
			}
			f.CrashAfter(-1)
			again, err := f.Lock(lockName)
			if err != nil {
				t.Fatalf("the lock was not freed: %v", err)
			}
			must(t, f.CloseAll())
			if _, err := inner.Lock(lockName); err != nil {
				t.Errorf("CloseAll did not free the lock: %v", err)
			}
			if err := again.Close(); err == nil {
				t.Error("closing again works")
			}
		})
	}
}

// Equal generators, equal failures.
func TestFaultIsReproducible(t *testing.T) {
	run := func(seed uint64) string {
		var log bytes.Buffer
		f := NewFault(newMemWith(t, "/a"))
		f.Inject(Rule{Ops: OpWrites, OneIn: 4, Rand: rngOf(seed), Effect: ShortWrite{-1, syscall.EIO}})
		f.Inject(Rule{Ops: OpReads, OneIn: 3, Rand: rngOf(seed + 1), Effect: FlipRead{}})
		f.Inject(Rule{Ops: OpDatasync, OneIn: 5, Rand: rngOf(seed + 2), Effect: LoseSync{}})
		file := openForTest(t, f, "/a/f")
		p := make([]byte, 3000)
		for i := range 100 {
			n, err := file.WriteAt(bytes.Repeat([]byte{byte(i)}, 3000), int64(i)*100)
			fmt.Fprintln(&log, n, err, file.Datasync())
			n, err = file.ReadAt(p, int64(i)*50)
			fmt.Fprintln(&log, n, err, p)
		}
		return log.String()
	}
	first := run(1)
	if again := run(1); again != first {
		t.Error("two runs of one seed differ")
	}
	if run(100) == first {
		t.Error("two seeds do the same")
	}
}

func TestSenselessRulesPanic(t *testing.T) {
	for name, r := range map[string]Rule{
		"no effect":        {Ops: OpAll},
		"no operation":     {Effect: Fail{syscall.EIO}},
		"wrong operation":  {Ops: OpWrites | OpDatasync, Effect: LoseSync{}},
		"chance of what":   {Ops: OpWrites, OneIn: 2, Effect: DropWrite{}},
		"pattern":          {Ops: OpWrites, Name: "[", Effect: DropWrite{}},
		"no error":         {Ops: OpWrites, Effect: Fail{}},
		"no short error":   {Ops: OpWrites, Effect: ShortWrite{Bytes: 1}},
		"random how":       {Ops: OpWrites, Effect: ShortWrite{-1, syscall.EIO}},
		"nothing to await": {Ops: OpWrites, Effect: Stall{}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			NewFault(NewMem()).Inject(r)
		}()
	}
}

func TestFaultConcurrently(t *testing.T) {
	f := NewFault(newMemWith(t, "/a"))
	f.Inject(Rule{Ops: OpWrites, OneIn: 3, Rand: rngOf(1), Effect: FlipWrite{}})
	f.Inject(Rule{Ops: OpDatasync, OneIn: 3, Rand: rngOf(2), Effect: LoseSync{}})
	var all sync.WaitGroup
	for i := range 4 {
		name := fmt.Sprintf("/a/%d", i)
		file := openForTest(t, f, name)
		all.Go(func() {
			for n := range 100 {
				if err := file.WritevAt([][]byte{make([]byte, 100)}, int64(n)*100); err != nil {
					t.Error(err)
				}
				if err := file.Datasync(); err != nil && !errors.Is(err, syscall.EIO) {
					t.Error(err)
				}
				if err := f.Rename(name, name+"x"); err != nil {
					t.Error(err)
				}
				name += "x"
			}
		})
	}
	all.Wait()
	if got := f.Count(OpWritevAt); got != 400 {
		t.Errorf("%d writes counted, want 400", got)
	}
}

func TestOpString(t *testing.T) {
	if got := (OpWrites | OpClose).String(); got != "WriteAt|WritevAt|Close" {
		t.Errorf("got %s", got)
	}
	if n := OpAll.index(); n != 0 || 1<<len(opNames) != opEnd {
		t.Errorf("%d names for operations up to %b", len(opNames), opEnd)
	}
}
