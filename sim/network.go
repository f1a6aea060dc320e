package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// conn is one connection of one proposer to one acceptor. Each end learns in
// its own time that the other has gone; what was sent before may arrive long after.
type conn struct {
	w      *world
	writer *writer
	node   *node
	number uint64
	r      *rand.Rand

	atWriter bool        // open as far as the writer knows
	lane     *flush.Lane // at the node, once the greeting is there
	life     int         // of the node that has the lane
	ended    bool        // the node has ended it
	upLast   int64       // nothing arrives before what was sent before it
	downLast int64
	heard    int64 // when the writer last got something
	held     int64 // everything in flight waits until then
}

// packet is a message on its way back, with the world's note of what the
// acceptor's disk held when it was sent.
type packet struct {
	message consensus.Message
	ghost   []byte
	end     *consensus.Error // not nil: the connection ends
	closed  bool             // likewise, without a word
}

// delay is how long a message takes, and when it may arrive at the earliest.
func (k *conn) delay(last *int64, towardsNode bool) int64 {
	d := between(k.r, k.w.latency/2, k.w.latency*2)
	if oneIn(k.r, 60) {
		d += between(k.r, 0, 100*k.w.latency)
	}
	at := max(k.w.now+d, k.held, k.w.cutUntil(k.writer.slot, k.node.index, towardsNode))
	if !k.w.rude || !oneIn(k.r, 30) {
		at = max(at, *last) // else it overtakes
		*last = at
	}
	return at - k.w.now
}

// lost is true for a message that a rude network drops.
func (k *conn) lost() bool { return k.w.rude && oneIn(k.r, 60) }

func (k *conn) copies() int {
	if k.w.rude && oneIn(k.r, 60) {
		return 2
	}
	return 1
}

// up sends a message to the node; nil says goodbye.
func (k *conn) up(m consensus.Message) {
	if m != nil && k.lost() {
		return
	}
	for range k.copies() {
		k.w.after(k.delay(&k.upLast, true), func() { k.arrive(m) })
	}
}

func (k *conn) arrive(m consensus.Message) {
	if d := k.w.cutUntil(k.writer.slot, k.node.index, true) - k.w.now; d > 0 {
		k.w.after(d, func() { k.arrive(m) }) // the cut came after it was sent
		return
	}
	n := k.node
	if n.loop == nil || k.lane != nil && k.life != n.life {
		k.breakDown()
		return
	}
	if _, ok := m.(*consensus.Greeting); ok && k.lane == nil && !k.ended {
		k.life = n.life
		k.lane = n.loop.Open(k)
	}
	if k.lane == nil {
		return
	}
	if m == nil {
		k.lane.Close()
		k.lane = nil
		k.ended = true
		n.wake()
		return
	}
	k.w.noteMessage("->", k, m)
	if k.lane.Put(m) == nil {
		n.wake()
	}
}

// down sends an answer to the writer.
func (k *conn) down(p packet) {
	if p.message != nil && k.lost() {
		return
	}
	for range k.copies() {
		k.w.after(k.delay(&k.downLast, false), func() { k.answer(p) })
	}
}

func (k *conn) answer(p packet) {
	if d := k.w.cutUntil(k.writer.slot, k.node.index, false) - k.w.now; d > 0 {
		k.w.after(d, func() { k.answer(p) })
		return
	}
	if d := k.writer.asleep - k.w.now; d > 0 {
		k.w.after(d, func() { k.answer(p) })
		return
	}
	if !k.atWriter || k.writer.gone {
		return
	}
	k.heard = k.w.now
	if p.message == nil {
		k.atWriter = false
		k.w.note("closed", k.writer.id, k.node.index, int(k.number))
		k.writer.p.Disconnect(k.node.id, k.number)
		k.writer.pump()
		return
	}
	k.w.noteMessage("<-", k, p.message)
	k.writer.take(k, p)
}

// breakDown tells the writer that the node's process is gone.
func (k *conn) breakDown() {
	k.ended = true
	k.down(packet{closed: true})
}

// Send, End and Cancel make conn the stream that the loop answers on.
func (k *conn) Send(m consensus.Message) error {
	p := packet{message: m}
	if a, ok := m.(*consensus.AppendResponse); ok {
		own := *a
		p.message = &own
	}
	p.ghost = k.w.answered(k, m)
	k.down(p)
	return nil
}

func (k *conn) End(err *consensus.Error) {
	k.ended = true
	k.w.note("end "+string(err.Reason), k.writer.id, k.node.index, int(k.number))
	k.w.refused(k, err)
	k.down(packet{end: err})
	lane := k.lane
	k.lane = nil
	k.w.after(0, func() {
		if lane != nil {
			lane.Close()
			k.node.wake()
		}
	})
}

func (k *conn) Cancel() {}

// cutUntil is until when a direction between a proposer and an acceptor is cut.
func (w *world) cutUntil(slot, node int, towardsNode bool) int64 {
	return w.cuts[slot][node][b2i(towardsNode)]
}

// cut cuts one direction for a while.
func (w *world) cut(slot, node int, towardsNode bool, d int64) {
	x := &w.cuts[slot][node][b2i(towardsNode)]
	*x = max(*x, w.now+d)
}

// sweep forgets connections that are closed at both ends.
func (w *world) sweep() {
	w.conns = slices.DeleteFunc(w.conns, func(k *conn) bool { return !k.atWriter && k.lane == nil })
}

// gossip carries what one acceptor knows to be committed to another.
func (w *world) gossip(from, to *node) {
	if from.loop == nil || from == to {
		return
	}
	p := from.loop.Positions()
	m := &consensus.PeerCommit{Creation: creation(), LastLogTerm: p.LastLogTerm, Commit: p.Commit}
	w.after(between(from.r, w.latency, 20*w.latency), func() {
		if to.loop != nil {
			to.loop.Post(flush.PeerCommit(m))
			to.wake()
		}
	})
}

// request is one recovery read: bytes of term's log from at, for one acceptor.
type request struct {
	term     wal.Term
	at       wal.LSN
	feed     int
	started  int64
	finished bool
}
