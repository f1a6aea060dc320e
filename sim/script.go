package sim

import (
	"fmt"
	"slices"
)

// deed is what one step of a script does.
type deed uint8

const (
	doAppend    deed = iota // a client appends through whoever leads
	doStart                 // a proposer instance starts in a slot
	doStop                  // its process ends
	doPause                 // it sleeps and then goes on as if nothing had been
	doCut                   // one direction between a slot and a node
	doIsolate               // a node from everybody
	doHold                  // everything in flight on one connection waits, long
	doPowerCut              // now
	doCrashSoon             // a power cut after so many more changes to the disk
	doKill                  // kill -9: the page cache stays
	doFailSync              // fdatasync fails once; pages clean, cache new
	doFailWrite             // a write fails once, or is cut short
	doFull                  // no space for a while
	doStall                 // the disk takes its time
	doFlip                  // a bit of a proved segment rots
	doMisdirect             // a write goes elsewhere
	doLose                  // the disk is gone
	doGossip                // one acceptor tells another what is committed
	doTrim
	doScrub
	doRead   // a consumer reads committed bytes
	doZombie // somebody speaks of another creation of the timeline
	deeds
)

func (d deed) String() string {
	return [...]string{
		"append", "start", "stop", "pause", "cut", "isolate", "hold", "power cut", "crash soon", "kill", "fail sync", "fail write", "full",
		"stall", "flip", "misdirect", "lose", "gossip", "trim", "scrub", "read", "zombie",
	}[d]
}

// step is one thing that is done to the world.
type step struct {
	At      int64
	Do      deed
	A, B, C int // a slot, a node, or a number, as the deed needs it
}

func (s step) String() string {
	return fmt.Sprintf("%9.3f ms  %v %d %d %d", float64(s.At)/millisecond, s.Do, s.A, s.B, s.C)
}

// usual says how often each deed comes, of 1,000 steps. Every seed draws its
// own subset and rates.
var usual = [deeds]int{
	doAppend: 640, doStart: 24, doStop: 10, doPause: 8, doCut: 40, doIsolate: 12, doHold: 12, doPowerCut: 16, doCrashSoon: 16, doKill: 12,
	doFailSync: 8, doFailWrite: 8, doFull: 6, doStall: 12, doFlip: 4, doMisdirect: 4, doLose: 2, doGossip: 40, doTrim: 24, doScrub: 10, doRead: 80, doZombie: 6,
}

// scriptOf draws the script of a seed.
func scriptOf(seed uint64, s shape) []step {
	r := chance(seed, chanceScript, 0, 0, 0)
	rates, sum := usual, 0
	for d := range rates {
		if d != int(doAppend) && d != int(doStart) && oneIn(r, 4) {
			rates[d] = 0
		} else if oneIn(r, 4) {
			rates[d] *= 4
		}
		sum += rates[d]
	}
	script := []step{{At: 0, Do: doStart}}
	for range s.steps {
		x, d := r.IntN(sum), 0
		for ; x >= rates[d]; d++ {
			x -= rates[d]
		}
		// Bursts: half of the steps come soon after another.
		at := between(r, 300*millisecond, s.length*9/10)
		if oneIn(r, 2) {
			at = min(script[r.IntN(len(script))].At+between(r, 0, 50*millisecond), s.length)
		}
		script = append(script, step{At: at, Do: deed(d), A: r.IntN(60), B: r.IntN(60), C: r.IntN(1 << 20)})
	}
	slices.SortStableFunc(script, func(x, y step) int { return int(x.At - y.At) })
	return script
}
