package sim

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// node is one acceptor: its disk, and its process while that runs.
type node struct {
	w     *world
	index int
	id    wal.NodeID
	r     *rand.Rand

	disk   *vfs.Mem
	fault  *vfs.Fault
	shadow shadow
	rec    recorder

	// The process; nil while it is down.
	loop *flush.Loop
	log  *storage.Log
	acc  *consensus.Acceptor
	life int // counts starts

	turning   bool  // a turn is planned
	preparing bool  // a preparation is planned
	stalled   int64 // turns wait until then
	damaged   bool  // its disk lost or changed something once durable, by the world's doing
	health    wal.Health

	// misdirected is set until a write has gone elsewhere and a later one has
	// proved that it is missing: before that no check can know, and a restart
	// would be like an older copy of the disk, which no protocol survives.
	misdirected *vfs.Injection

	// Of the invariants.
	promised wal.Term       // highest term it has answered with
	voted    wal.ProposerID // who was told to have the vote in promised
	grantIn  wal.Term
	before   consensus.Status
	stored   wal.Term
}

const directory = "data/sim/world"

func (n *node) config(fsys vfs.FS) storage.Config {
	var key [32]byte
	for i := range key {
		key[i] = byte(mix(n.w.seed+uint64(n.index)<<32+uint64(n.life)<<40) >> (i % 8 * 8))
	}
	return storage.Config{
		FS: fsys, Dir: directory, SegmentBytes: n.w.segmentBytes, FirstSegmentBytes: 16 << 10,
		RequestBytesMax: requestBytesMax, StateBytesMax: stateBytesMax, StateReserveBytes: reserveBytes,
		Rand: rand.NewChaCha8(key),
	}
}

// create makes the timeline on an empty disk.
func (n *node) create() error {
	n.disk = vfs.NewMem()
	st := wal.State{Creation: creation(), FirstLSN: n.w.first, Membership: n.w.membership(), Commit: n.w.first, Horizon: n.w.first}
	n.shadow = shadow{first: n.w.first, state: st}
	if err := storage.Create(n.config(n.disk), st); err != nil {
		return err
	}
	return nil
}

// start opens the log as the acceptor does and puts the loop on it.
func (n *node) start() {
	if n.loop != nil {
		return
	}
	n.life++
	n.r = chance(n.w.seed, chanceNode, n.index, n.life, 0)
	n.fault = vfs.NewFault(n.disk)
	log, err := storage.Open(n.config(n.fault))
	var corrupt *storage.CorruptionError
	switch {
	case errors.As(err, &corrupt):
		if !n.damaged {
			n.w.fail("FalseAlarm", "node %d, whose disk is sound, opens with: %v", n.id, err)
			return
		}
		n.w.note("corrupt", n.index, len(corrupt.Damage), 0)
	case err != nil && n.damaged && errors.Is(err, fs.ErrNotExist), errors.Is(err, storage.ErrNotFound) && n.damaged:
	case err != nil:
		n.w.fail("Reopen", "node %d does not open: %v", n.id, err)
		return
	}
	if log == nil {
		n.w.note("absent", n.index, n.life, 0)
		return // it refuses everything but status
	}
	n.log, n.health = log, log.Health()
	n.recovered()
	n.rec = recorder{n: n}
	n.acc = consensus.NewAcceptor(consensus.AcceptorConfig{Node: n.id, Timeline: timeline, RequestBytesMax: requestBytesMax, WindowBytes: int(n.w.windowBytes)},
		log.State(), log.FlushLSN(), n.health)
	n.loop = flush.NewLoop(flush.Config{Acceptor: n.acc, Log: &n.rec, Pool: flush.NewPool(8 << 20), InboxBytes: inboxBytes, Clock: func() int64 { return n.w.now * 1000 }})
	n.before = n.acc.Status()
	n.w.note("start", n.index, n.life, int(n.before.Flush))
	n.prepare(0)
	n.beQuiet(n.life)
}

// stop ends the process at once.
func (n *node) stop() {
	if n.loop == nil {
		return
	}
	for _, k := range n.w.conns {
		if k.node == n && k.lane != nil {
			k.lane = nil
			k.breakDown()
		}
	}
	n.loop, n.acc = nil, nil
	_ = n.log.Close(nil)
	n.log = nil
	n.turning, n.preparing = false, false
}

// powerCut ends the process and leaves of the disk what a power cut leaves.
func (n *node) powerCut(how int) {
	r := chance(n.w.seed, chanceCrash, n.index, n.life, how)
	n.stop()
	switch how % 4 {
	case 0:
		n.disk = n.disk.CrashWorst()
	case 1:
		n.disk = n.disk.CrashKeepAll()
	default:
		n.disk = n.disk.Crash(r)
	}
	n.w.note("power cut", n.index, how, 0)
}

// lose ends the process and takes the disk away.
func (n *node) lose() {
	n.stop()
	n.disk, n.misdirected = vfs.NewMem(), nil
	n.w.note("lost", n.index, 0, 0)
}

// kill ends the process; the page cache stays.
func (n *node) kill() {
	n.stop()
	n.disk.Restart()
	n.w.note("kill", n.index, 0, 0)
}

// restartLater starts the process again after a while.
func (n *node) restartLater(delay int64) {
	n.w.after(delay, func() { n.start() })
}

// wake plans a turn.
func (n *node) wake() {
	if n.turning || n.loop == nil {
		return
	}
	n.turning = true
	life := n.life
	n.w.after(max(between(n.r, n.w.sync/4, n.w.sync*2), n.stalled-n.w.now), func() {
		if n.life == life && n.loop != nil {
			n.turning = false
			n.turn()
		}
	})
}

func (n *node) turn() {
	wrote, struck := n.log.WriteLSN(), n.misdirected != nil && n.misdirected.Strikes() > 0
	outcome := n.loop.Turn()
	n.w.note("turn", n.index, int(outcome), int(n.log.WriteLSN()-wrote))
	if n.fault.Crashed() {
		n.powerCut(2)
		n.restartLater(between(n.r, 10*millisecond, 2*second))
		return
	}
	n.check()
	if struck && n.log.WriteLSN() > wrote {
		n.misdirected = nil
	}
	if outcome == flush.Done {
		n.wake()
	}
	if n.log.NeedsPrepare() || outcome == flush.Blocked {
		n.prepare(between(n.r, 0, 20*millisecond))
	}
	if n.acc.Status().Health == wal.Poisoned && n.health == wal.Healthy {
		// The acceptor opens the log again once the disk works.
		n.health = wal.Poisoned
		life := n.life
		n.w.after(between(n.r, 200*millisecond, 3*second), func() {
			if n.life != life || n.loop == nil {
				return
			}
			n.fault.Clear()
			if n.misdirected != nil {
				n.lose()
			} else if oneIn(n.r, 3) {
				n.powerCut(n.r.IntN(8))
			} else {
				n.kill()
			}
			n.start()
		})
	}
}

// prepare plans the making of the next segment, which works in the background.
func (n *node) prepare(delay int64) {
	if n.preparing || n.loop == nil {
		return
	}
	n.preparing = true
	life := n.life
	n.w.after(delay, func() {
		if n.life != life || n.loop == nil {
			return
		}
		n.preparing = false
		err := errors.Join(n.log.Prepare(), n.log.Reclaim())
		n.w.note("prepare", n.index, b2i(err != nil), 0)
		if n.fault.Crashed() {
			n.powerCut(2)
			n.restartLater(between(n.r, 10*millisecond, 2*second))
			return
		}
		if err != nil && n.log.Err() == nil {
			n.prepare(200 * millisecond)
		}
		n.wake()
	})
}

// beQuiet saves commit and horizon from time to time.
func (n *node) beQuiet(life int) {
	n.w.after(n.w.quietEvery, func() {
		if n.life != life || n.loop == nil {
			return
		}
		n.loop.Post(flush.Quiet(nil))
		n.wake()
		n.beQuiet(life)
	})
}

// trim lets go of what lies below the horizon.
func (n *node) trim() {
	if n.loop == nil || n.health != wal.Healthy {
		return
	}
	log, before := n.log, n.acc.Status().Horizon
	n.loop.Post(flush.Event{Saves: true, Write: func(st *wal.State) error {
		was := log.OldestLSN()
		err := log.Trim(st, min(before, st.Horizon))
		if log.OldestLSN() > was { // else there was nothing to do
			n.shadow.state = st.Clone()
		}
		return err
	}})
	n.wake()
}

// files are the segments, oldest first, with the newest two left out: what is
// in the others was proved by later frames.
func (n *node) provedFiles() []string {
	entries, err := n.disk.ReadDir(directory)
	if err != nil {
		return nil
	}
	var names []string
	newest := ""
	if s := n.segments(); len(s) > 0 {
		newest = s[len(s)-1]
	}
	for _, e := range entries {
		if e.Name < newest {
			names = append(names, directory+"/"+e.Name)
		}
	}
	return slices.Clip(names)
}

func (n *node) segments() (names []string) {
	if n.log == nil {
		return nil
	}
	for _, s := range n.log.Segments() {
		names = append(names, s.Name)
	}
	return names
}

func b2i(v bool) int {
	if v {
		return 1
	}
	return 0
}
