package sim

import (
	"math/rand/v2"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// writer is one proposer instance: the real core, and around it what the
// client library does: it holds the bytes it handed out, feeds the acceptors, and
// fetches what a laggard misses from one that has adopted its term.
type writer struct {
	w    *world
	slot int
	id   int // instance, from 1
	r    *rand.Rand
	p    *consensus.Proposer

	gone   bool  // its process ended
	asleep int64 // it does nothing until then

	base   wal.LSN // where window begins
	window []byte  // handed out
	open   []*conn // by node; nil while there is none
	feeds  []feed  // by node
	votes  [][]byte
	ledger *ledger // of the present term
}

// feed is how far a writer has sent to one node.
type feed struct {
	connection uint64
	next       wal.LSN
	refill     *request
	bytes      []byte // fetched, from next on
	backoff    int64
}

func (w *world) newWriter(slot int) *writer {
	w.instances++
	x := &writer{
		w: w, slot: slot, id: w.instances, r: chance(w.seed, chanceWriter, slot, w.instances, 0),
		open: make([]*conn, w.nodes_()), feeds: make([]feed, w.nodes_()), votes: make([][]byte, w.nodes_()),
	}
	x.p = consensus.NewProposer(consensus.ProposerConfig{
		ID: proposerID(x.id), Timeline: timeline, Creation: creation(), Membership: w.membership(), SystemID: 77, Jitter: x.r.IntN,
	})
	w.note("proposer", x.id, slot, 0)
	x.tick()
	return x
}

func proposerID(id int) wal.ProposerID { return wal.ProposerID{byte(id), byte(id >> 8), 0xF0} }

// end is the end of its process. Nobody says goodbye.
func (x *writer) end() {
	x.gone = true
	for i, k := range x.open {
		if k != nil && k.atWriter {
			k.atWriter = false
			k.w.after(between(x.r, 0, 20*second), func() { k.arrive(nil) }) // keepalive
		}
		x.open[i] = nil
	}
	x.w.note("proposer gone", x.id, x.slot, 0)
}

// tick is the passing of time, every 100 ms.
func (x *writer) tick() {
	x.w.after(max(100*millisecond, x.asleep-x.w.now), func() {
		if x.gone {
			return
		}
		if x.asleep <= x.w.now {
			x.turn()
		}
		x.tick()
	})
}

func (x *writer) turn() {
	x.p.Tick()
	x.after()
	for i, n := range x.w.nodes {
		k := x.open[i]
		if k != nil && k.atWriter && x.w.now-k.heard > 3*second {
			// Silence: give it up. What was sent may still arrive.
			k.atWriter = false
			k.up(nil)
			x.p.Disconnect(n.id, k.number)
			k = nil
		}
		if k == nil || !k.atWriter {
			x.connect(n)
			continue
		}
		if s, ok := x.p.Stream(n.id); ok && s.Connection == k.number {
			st := x.p.Status()
			k.up(&consensus.AppendRequest{Generation: s.Generation, Term: s.Term, Begin: s.Resume, Commit: st.Commit, Horizon: st.Horizon})
		}
	}
	x.pump()
}

func (x *writer) connect(n *node) {
	g := x.p.Connect(n.id)
	if g == nil {
		return
	}
	k := &conn{w: x.w, writer: x, node: n, number: g.Connection, atWriter: true, heard: x.w.now, r: chance(x.w.seed, chanceConn, x.id, n.index, int(g.Connection))}
	x.open[n.index] = k
	x.w.conns = append(x.w.conns, k)
	if len(x.w.conns) > 64 {
		x.w.sweep()
	}
	k.up(g)
}

// take gives an answer to the core.
func (x *writer) take(k *conn, p packet) {
	if _, ok := p.message.(*consensus.VoteResponse); ok {
		x.votes[k.node.index] = p.ghost
	}
	x.p.Step(k.node.id, k.number, p.message)
	x.after()
	x.pump()
}

// after asserts what must hold after every step of the core.
func (x *writer) after() { x.w.checkWriter(x) }

// append hands out data, if it leads.
func (x *writer) append(data []byte) bool {
	if x.gone || x.p.Status().Phase != consensus.Leading || x.asleep > x.w.now {
		return false
	}
	if len(x.window) == 0 {
		x.base = x.p.Status().Tail
	}
	x.window = append(x.window, data...)
	x.ledger.handOut(x.base, x.window)
	x.p.Handed(x.base + wal.LSN(len(x.window)))
	x.pump()
	return true
}

// pump sends what there is to send.
func (x *writer) pump() {
	for _, o := range x.p.Outputs() {
		k := x.open[o.Node-1]
		if k == nil || !k.atWriter || k.number != o.Connection {
			continue
		}
		k.up(o.Message)
		if o.Message == nil {
			k.atWriter = false
		}
	}
	for i := range x.w.nodes {
		for x.feed(i) {
		}
	}
}

// feed sends node i its next chunk, if there is one and the window allows.
func (x *writer) feed(i int) bool {
	k, f := x.open[i], &x.feeds[i]
	s, ok := x.p.Stream(wal.NodeID(i + 1))
	if !ok || k == nil || !k.atWriter || k.number != s.Connection {
		return false
	}
	if f.connection != s.Connection {
		*f = feed{connection: s.Connection, next: s.Resume}
	}
	st, peers := x.p.Status(), x.p.Peers()
	if f.next-min(f.next, max(peers[i].Acked, s.Resume)) >= x.w.windowBytes {
		return false
	}
	size := 1 + x.r.IntN(requestBytesMax)
	if oneIn(x.r, 3) {
		size = requestBytesMax
	}
	var data []byte
	switch {
	case len(x.window) > 0 && f.next >= x.base:
		data = x.window[f.next-x.base:]
	case f.next < st.Start && len(f.bytes) > 0:
		data = f.bytes
	case f.next < st.Start:
		x.fetch(i, f, st.Term)
		return false
	}
	if len(data) == 0 {
		return false
	}
	data = data[:min(len(data), size)]
	f.bytes = f.bytes[min(len(data), len(f.bytes)):]
	k.up(&consensus.AppendRequest{
		Generation: s.Generation, Term: s.Term, Begin: f.next, Commit: st.Commit, Horizon: st.Horizon,
		CRC: wal.Checksum(data), Data: data,
	})
	f.next += wal.LSN(len(data))
	return true
}

// fetch asks another acceptor for the bytes that node i lacks (P3).
func (x *writer) fetch(i int, f *feed, term wal.Term) {
	if f.refill != nil && !f.refill.finished && x.w.now-f.refill.started < 2*second || f.backoff > x.w.now {
		return
	}
	source, ok := x.p.Source(wal.NodeID(i+1), f.next)
	if !ok {
		return
	}
	q := &request{term: term, at: f.next, feed: i, started: x.w.now}
	f.refill = q
	from := x.w.nodes[source-1]
	travel := func(towards bool) int64 {
		return between(x.r, x.w.latency/2, x.w.latency*4) + max(0, x.w.cutUntil(x.slot, from.index, towards)-x.w.now)
	}
	connection := f.connection
	x.w.after(travel(true), func() {
		data, damaged := from.recoveryRead(q)
		x.w.after(travel(false), func() {
			q.finished = true
			if x.gone {
				return
			}
			if damaged {
				x.p.Distrust(from.id)
				x.after()
				x.pump()
			}
			if f.refill != q || f.connection != connection || f.next != q.at {
				return
			}
			if len(data) == 0 {
				f.backoff = x.w.now + 100*millisecond
				return
			}
			if end := x.p.Status().Start; q.at+wal.LSN(len(data)) > end {
				data = data[:end-q.at]
			}
			f.bytes = data
			x.pump()
		})
	})
}
