package vfs

import (
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
)

// Fault is an FS in front of another one that makes operations go wrong as its
// rules say, counts them, and can end the process's access at a given one.
// Everything is decided by the order of operations and by the generators that
// the caller hands in, so equal runs fail equally.
//
// All methods may be called concurrently; then which operation comes first is
// up to the scheduler, and so is which one a counting rule strikes.
type Fault struct {
	inner FS

	mu         sync.Mutex // guards what follows, and the rules; not held during an operation
	injections []*Injection
	observe    func(op Op, name string)
	counts     [32]int // by Op.index
	mutations  int
	crashAfter int          // mutations that still work; negative: all
	open       []*faultFile // locks included
}

var _ FS = (*Fault)(nil)

// NewFault is inner without any fault yet.
func NewFault(inner FS) *Fault { return &Fault{inner: inner, crashAfter: -1} }

// Inject puts a rule in force. Of several that strike an operation the first
// injected decides, and the later do not count it; Stall does not decide. A
// rule that makes no sense panics.
func (f *Fault) Inject(r Rule) *Injection {
	r.check()
	f.mu.Lock()
	defer f.mu.Unlock()
	i := &Injection{fault: f, rule: r}
	f.injections = append(f.injections, i)
	return i
}

// Clear removes all rules.
func (f *Fault) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.injections = nil
}

func (f *Fault) remove(i *Injection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.Index(f.injections, i); at >= 0 {
		f.injections = slices.Delete(f.injections, at, at+1)
	}
}

// Observe has seen called with every operation, before it is done and whatever
// becomes of it, with the Fault locked: seen must not use it. nil ends it.
func (f *Fault) Observe(seen func(op Op, name string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observe = seen
}

// Count is how many operations in ops were tried since the last ResetCounts,
// those that went wrong included, those after a crash not.
func (f *Fault) Count(ops Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := 0
	for i, n := range f.counts {
		if ops&(1<<i) != 0 {
			sum += n
		}
	}
	return sum
}

// ResetCounts sets what Count counts to zero. Mutations goes on.
func (f *Fault) ResetCounts() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.counts[:])
}

// Mutations is how many operations in OpMutating were tried so far: the number
// of places where a run can be crashed, less one.
func (f *Fault) Mutations() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mutations
}

// CrashAfter lets operations in OpMutating go on until there have been n of them since
// NewFault; then every further operation, of whatever kind, returns
// ErrCrashed and does nothing. A negative n lifts it.
//
// To try every crash of a run: count its Mutations once, then run it again for
// each n from 0 to that count with a Mem below, each time crash the Mem, and
// recover from what is left. What an operation leaves when it is cut in half is
// covered by Mem.Crash after it, since nothing of it is synced.
func (f *Fault) CrashAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashAfter = n
}

// Crashed says whether the point set by CrashAfter is reached.
func (f *Fault) Crashed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crashed()
}

func (f *Fault) crashed() bool { return f.crashAfter >= 0 && f.mutations >= f.crashAfter }

// CloseAll closes every file and lock that is open, as the end of the process
// does, and returns the first error. Using them afterwards is an error.
func (f *Fault) CloseAll() error {
	f.mu.Lock()
	files := f.open
	f.open = nil
	f.mu.Unlock()
	var first error
	for _, file := range files {
		if err := file.close(); first == nil {
			first = err
		}
	}
	return first
}

// strike is what the rules have in store for one operation.
type strike struct {
	effect Effect     // nil: none
	rng    *rand.Rand // of this strike alone; nil if the rule has none
}

// begin is called before every operation on a name. Fail and a crash come back
// as the error.
func (f *Fault) begin(op Op, name, otherName string) (strike, error) {
	f.mu.Lock()
	return f.beginLocked(op, path.Clean(name), otherName)
}

// beginLocked unlocks the Fault before it returns.
func (f *Fault) beginLocked(op Op, name, otherName string) (strike, error) {
	if f.crashed() {
		f.mu.Unlock()
		return strike{}, pathError(op.String(), name, ErrCrashed)
	}
	f.counts[op.index()]++
	if op&OpMutating != 0 {
		f.mutations++
	}
	if f.observe != nil {
		f.observe(op, name)
	}
	var s strike
	var stalls []Stall
	for _, i := range f.injections {
		stall, isStall := i.rule.Effect.(Stall)
		if !isStall && s.effect != nil || !i.strikesNow(op, name, otherName) {
			continue
		}
		if isStall {
			stalls = append(stalls, stall)
			continue
		}
		s.effect = i.rule.Effect
		if r := i.rule.Rand; r != nil {
			s.rng = rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		}
	}
	f.mu.Unlock()

	for _, stall := range stalls {
		stall.Wait(op, name)
	}
	if fail, ok := s.effect.(Fail); ok {
		return s, pathError(op.String(), name, fail.Err)
	}
	return s, nil
}

func (f *Fault) Create(name string) (File, error) { return f.file(OpCreate, name, f.inner.Create) }
func (f *Fault) Open(name string) (File, error)   { return f.file(OpOpen, name, f.inner.Open) }
func (f *Fault) OpenRead(name string) (File, error) {
	return f.file(OpOpenRead, name, f.inner.OpenRead)
}

func (f *Fault) file(op Op, name string, open func(string) (File, error)) (File, error) {
	if _, err := f.begin(op, name, ""); err != nil {
		return nil, err
	}
	inner, err := open(name)
	if err != nil {
		return nil, err
	}
	return f.track(&faultFile{fault: f, inner: inner, closer: inner, name: path.Clean(name)}), nil
}

func (f *Fault) Lock(name string) (io.Closer, error) {
	if _, err := f.begin(OpLock, name, ""); err != nil {
		return nil, err
	}
	inner, err := f.inner.Lock(name)
	if err != nil {
		return nil, err
	}
	return f.track(&faultFile{fault: f, closer: inner, name: path.Clean(name)}), nil
}

func (f *Fault) track(file *faultFile) *faultFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = append(f.open, file)
	return file
}

func (f *Fault) untrack(file *faultFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.Index(f.open, file); at >= 0 {
		f.open = slices.Delete(f.open, at, at+1)
	}
}

func (f *Fault) Rename(oldName, newName string) error {
	was, is := path.Clean(oldName), path.Clean(newName)
	if _, err := f.begin(OpRename, was, is); err != nil {
		return err
	}
	if err := f.inner.Rename(oldName, newName); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.open {
		if below, ok := strings.CutPrefix(file.name, was); ok && (below == "" || below[0] == '/') {
			file.name = is + below
		}
	}
	return nil
}

func (f *Fault) Remove(name string) error {
	if _, err := f.begin(OpRemove, name, ""); err != nil {
		return err
	}
	return f.inner.Remove(name)
}

func (f *Fault) MkdirAll(name string) error {
	if _, err := f.begin(OpMkdirAll, name, ""); err != nil {
		return err
	}
	return f.inner.MkdirAll(name)
}

func (f *Fault) ReadDir(name string) ([]Entry, error) {
	if _, err := f.begin(OpReadDir, name, ""); err != nil {
		return nil, err
	}
	return f.inner.ReadDir(name)
}

func (f *Fault) SyncDir(name string) error {
	if _, err := f.begin(OpSyncDir, name, ""); err != nil {
		return err
	}
	return f.inner.SyncDir(name)
}

func (f *Fault) FreeBytes(name string) (uint64, error) {
	if _, err := f.begin(OpFreeBytes, name, ""); err != nil {
		return 0, err
	}
	return f.inner.FreeBytes(name)
}
