package sim

import (
	"bytes"
	"slices"
	"syscall"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// perform does one step of the script.
func (w *world) perform(s step) {
	slot, n := s.A%w.slots, w.nodes[s.B%len(w.nodes)]
	x := w.writers[slot]
	some := int64(s.C)
	switch s.Do {
	case doAppend:
		w.append(slot, s.C)
	case doStart:
		w.startWriter(slot)
	case doStop:
		if x != nil && !x.gone {
			x.end()
		}
	case doPause:
		if x != nil {
			x.asleep = w.now + some%(8*second)
		}
	case doCut:
		w.cut(slot, n.index, s.C&1 == 0, some*7)
	case doIsolate:
		for i := range w.slots {
			w.cut(i, n.index, true, some*5)
			w.cut(i, n.index, false, some*5)
		}
	case doHold:
		if len(w.conns) > 0 {
			w.conns[s.A%len(w.conns)].held = w.now + some*30
		}
	case doPowerCut:
		if n.loop != nil && n.misdirected == nil {
			w.crashes++
			n.powerCut(s.A)
			n.restartLater(some)
		}
	case doCrashSoon:
		if n.loop != nil && n.misdirected == nil {
			w.crashes++
			n.fault.CrashAfter(1 + s.A%7)
		}
	case doKill:
		if n.loop != nil && n.misdirected == nil {
			n.kill()
			n.restartLater(some)
		}
	case doGossip:
		w.gossip(n, w.nodes[s.A%len(w.nodes)])
	case doTrim:
		n.trim()
	case doRead:
		w.consumers[s.A%len(w.consumers)].read(n)
	case doZombie:
		w.zombie(n)
	default:
		w.harm(s, n)
	}
}

// harm does something to a disk.
func (w *world) harm(s step, n *node) {
	if n.loop == nil {
		return
	}
	r := chance(w.seed, chanceDisk, n.index, s.A, s.C)
	switch s.Do {
	case doFailSync:
		n.fault.Inject(vfs.Rule{Ops: vfs.OpDatasync, Skip: s.A % 4, Times: 1, Rand: r, Effect: vfs.LoseSync{}})
	case doFailWrite:
		var e vfs.Effect = vfs.Fail{Err: syscall.EIO}
		if s.C&1 == 0 {
			e = vfs.ShortWrite{Bytes: -1, Err: syscall.ENOSPC}
		}
		n.fault.Inject(vfs.Rule{Ops: vfs.OpWrites, Skip: s.A % 4, Times: 1, Rand: r, Effect: e})
	case doFull:
		disk := n.disk
		disk.SetCapacity(0)
		w.after(int64(s.C)*4, func() { disk.SetCapacity(1 << 40); n.prepare(0) })
	case doStall:
		n.stalled = w.now + int64(s.C)*8
	case doFlip:
		w.flip(s, n)
	case doMisdirect:
		if w.mayDamage(n) {
			n.misdirected = n.fault.Inject(vfs.Rule{Ops: vfs.OpWritevAt, Times: 1, Effect: vfs.MisdirectWrite{By: 4096}})
		}
	case doLose:
		if w.mayDamage(n) {
			n.lose()
			n.restartLater(second)
		}
	case doScrub:
		w.scrub(n)
	}
}

// mayDamage marks a copy as damaged, if enough sound ones remain.
func (w *world) mayDamage(n *node) bool {
	if n.damaged {
		return true
	}
	count := 0
	for _, o := range w.nodes {
		count += b2i(o.damaged)
	}
	n.damaged = count < w.faulty()
	return n.damaged
}

// flip lets one bit rot in what later frames have proved. What only the very
// last frames say is beyond any check once they rot.
func (w *world) flip(s step, n *node) {
	files := n.provedFiles()
	if len(files) == 0 || !w.mayDamage(n) {
		return
	}
	name := files[s.A%len(files)]
	size := int64(16 << 10)
	if entries, err := n.disk.ReadDir(directory); err == nil {
		for _, e := range entries {
			if directory+"/"+e.Name == name {
				size = e.Size
			}
		}
	}
	_ = n.disk.FlipBit(name, int64(s.C)%size, uint(s.A%8)) // a hole has nothing to rot
}

// scrub reads everything; on a sound disk it finds nothing.
func (w *world) scrub(n *node) {
	scrubber := n.log.NewScrubber()
	defer func() { _ = scrubber.Close() }()
	for {
		_, damage, done, err := scrubber.Step(1 << 20)
		if len(damage) > 0 && !n.damaged {
			w.fail("FalseAlarm", "scrub finds damage on node %d, whose disk is sound: %v", n.id, damage[0])
		}
		if len(damage) > 0 {
			n.loop.Post(flush.Quarantine())
			n.wake()
		}
		if done || err != nil {
			return
		}
	}
}

// append hands out some bytes through whoever leads, preferably in a slot.
func (w *world) append(slot, size int) {
	w.appends++
	data := make([]byte, 1+size%700)
	if size%11 == 0 {
		data = make([]byte, 3000+size%5000)
	}
	for i := range data {
		data[i] = byte(mix(w.seed + uint64(w.appends)<<20 + uint64(i)))
	}
	for i := range w.slots {
		if x := w.writers[(slot+i)%w.slots]; x != nil && x.append(bytes.Clone(data)) {
			return
		}
	}
}

// startWriter starts an instance in a slot, unless one is at work there.
func (w *world) startWriter(slot int) {
	if x := w.writers[slot]; x != nil {
		if !x.gone && x.p.Status().Phase != consensus.Stopped {
			return
		}
		if !x.gone {
			x.end()
		}
	}
	w.writers[slot] = w.newWriter(slot)
}

// zombie speaks to a node of an earlier creation of the timeline (16).
func (w *world) zombie(n *node) {
	if n.loop == nil {
		return
	}
	z := &impostor{w: w, n: n}
	lane := n.loop.Open(z)
	m := w.membership()
	for _, msg := range []consensus.Message{
		&consensus.Greeting{Version: consensus.Version, Timeline: timeline, Creation: wal.CreationID{0xDE, 0xAD}, Proposer: wal.ProposerID{0xFF, 0xFF}, Connection: 1, Membership: m},
		&consensus.VoteRequest{Generation: 1, Term: 1 << 40},
		&consensus.Elected{Generation: 1, Term: 1 << 40, Resume: w.first, History: wal.History{{Term: 1 << 40, LSN: w.first}}},
		&consensus.AppendRequest{Generation: 1, Term: 1 << 40, Begin: w.first, Data: []byte("zombie"), CRC: wal.Checksum([]byte("zombie"))},
	} {
		if lane.Put(msg) != nil {
			break
		}
	}
	w.after(second, lane.Close)
	n.wake()
}

type impostor struct {
	w *world
	n *node
}

func (z *impostor) Send(m consensus.Message) error {
	z.w.fail("16 IdentityFence", "node %d answers a proposer of another creation with %T", z.n.id, m)
	return nil
}
func (z *impostor) End(*consensus.Error) {}
func (z *impostor) Cancel()              {}

// sound lists the nodes whose disks are.
func (w *world) sound() []*node {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return n.damaged })
}
