package vfs

import (
	"fmt"
	"math/rand/v2"
	"path"
)

// Rule says which operations are to go wrong, and how. It matches an operation
// that is in Ops on a name that fits Name; of those it matches it strikes, after
// the first Skip, Times in all, or one in OneIn by chance, until Times is used up.
type Rule struct {
	Ops Op

	// Name is a pattern as for path.Match, for the whole name or for its last
	// element; empty fits all. A rename is matched by either of its names, an
	// open file by the name that it has at the moment.
	Name string

	Skip  int // matches that pass before the first strike
	Times int // strikes; 0: without end
	OneIn int // chance of a strike; 0 or 1: always

	// Rand is where chance comes from: for OneIn and for what an Effect leaves
	// open. Nothing else may use it while the rule is in force.
	Rand *rand.Rand

	Effect Effect
}

// Effect is what happens to an operation that a rule strikes.
type Effect interface {
	// suits are the operations it can happen to.
	suits() Op
}

// Fail makes an operation return Err and do nothing: EIO, ENOSPC, EROFS, EMFILE.
// On Close the file is closed all the same.
type Fail struct{ Err error }

// LoseSync makes Datasync fail with EIO. On a [Mem] the pages are clean after
// it, as on Linux: see there. With Rule.Rand a part of them reached the disk,
// without it none. On another file system nothing is synced.
type LoseSync struct{}

// ShortWrite writes the first Bytes bytes, or with a negative Bytes and Rule.Rand a random part,
// and then fails with Err.
type ShortWrite struct {
	Bytes int
	Err   error
}

// FlipRead flips a bit of what was read, not of what is stored: the lowest of
// the first byte, or with Rule.Rand a random one.
type FlipRead struct{}

// FlipWrite flips a bit of what is written and reports success: the lowest of
// the first byte, or with Rule.Rand a random one. For rot long after the
// writing there is Mem.FlipBit.
type FlipWrite struct{}

// DropWrite writes nothing and reports success.
type DropWrite struct{}

// MisdirectWrite writes to the place By bytes further on, or back, in the same
// file and reports success. A place before the beginning is nowhere.
type MisdirectWrite struct{ By int64 }

// Stall calls Wait before the operation is done, with no lock held: Wait
// decides what waiting is. Other rules still apply to the operation.
type Stall struct {
	Wait func(op Op, name string)
}

func (Fail) suits() Op           { return OpAll }
func (LoseSync) suits() Op       { return OpDatasync }
func (ShortWrite) suits() Op     { return OpWrites }
func (FlipRead) suits() Op       { return OpReads }
func (FlipWrite) suits() Op      { return OpWrites }
func (DropWrite) suits() Op      { return OpWrites }
func (MisdirectWrite) suits() Op { return OpWrites }
func (Stall) suits() Op          { return OpAll }

// check panics for a rule that cannot be meant: a test with it would test nothing.
func (r *Rule) check() {
	switch {
	case r.Effect == nil:
		panic("vfs: a Rule without an Effect")
	case r.Ops == 0 || r.Ops&^r.Effect.suits() != 0:
		panic(fmt.Sprintf("vfs: %T is for %v, not for %v", r.Effect, r.Effect.suits(), r.Ops))
	case r.OneIn > 1 && r.Rand == nil:
		panic("vfs: a Rule with OneIn needs Rand")
	}
	if _, err := path.Match(r.Name, ""); err != nil {
		panic(fmt.Sprintf("vfs: pattern %q: %v", r.Name, err))
	}
	if e, ok := r.Effect.(ShortWrite); ok && (e.Err == nil || e.Bytes < 0 && r.Rand == nil) {
		panic("vfs: ShortWrite needs Err, and Rand if Bytes is negative")
	}
	if e, ok := r.Effect.(Fail); ok && e.Err == nil {
		panic("vfs: Fail needs Err")
	}
	if e, ok := r.Effect.(Stall); ok && e.Wait == nil {
		panic("vfs: Stall needs Wait")
	}
}

// Injection is a rule in force.
type Injection struct {
	fault   *Fault
	rule    Rule
	matched int
	strikes int
}

// Strikes is how many operations the rule has struck.
func (i *Injection) Strikes() int {
	i.fault.mu.Lock()
	defer i.fault.mu.Unlock()
	return i.strikes
}

// Remove ends the rule; operations it has already struck go wrong nevertheless.
func (i *Injection) Remove() { i.fault.remove(i) }

// strikesNow says whether the rule strikes this operation. The caller holds the Fault's lock.
func (i *Injection) strikesNow(op Op, name, otherName string) bool {
	r := &i.rule
	if r.Ops&op == 0 || !fits(r.Name, name) && (otherName == "" || !fits(r.Name, otherName)) {
		return false
	}
	i.matched++
	if i.matched <= r.Skip || r.Times > 0 && i.strikes >= r.Times {
		return false
	}
	if r.OneIn > 1 && r.Rand.IntN(r.OneIn) != 0 {
		return false
	}
	i.strikes++
	return true
}

// fits says whether name, or its last element, is of the pattern.
func fits(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	whole, _ := path.Match(pattern, name) // check has tried the pattern
	last, _ := path.Match(pattern, path.Base(name))
	return whole || last
}
