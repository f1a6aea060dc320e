package sim

import (
	"bytes"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// healSeconds is how long a healed world may take to commit new bytes and to
// bring all sound copies to the same log: several campaigns, and every time-out.
const healSeconds = 90

// heal ends all faults and asserts that the world recovers (20): one proposer
// remains, commits new bytes, and every sound copy comes to hold the same.
func (w *world) heal() {
	w.note("heal", 0, 0, 0)
	for i := range w.cuts {
		for j := range w.cuts[i] {
			w.cuts[i][j] = [2]int64{}
		}
	}
	for _, k := range w.conns {
		k.held = 0
		if w.rude {
			k.breakDown() // what it lost in the middle of a connection, nobody would ever send again
		}
	}
	w.rude = false
	for slot, x := range w.writers {
		if x != nil && !x.gone && slot > 0 {
			x.end()
		}
	}
	if x := w.writers[0]; x != nil {
		x.asleep = 0
	}
	for _, n := range w.nodes {
		n.disk.SetCapacity(1 << 40)
		n.stalled = 0
		if n.loop != nil {
			n.fault.Clear()
			n.fault.CrashAfter(1 << 40)
			n.prepare(0)
		} else {
			n.start()
		}
	}
	deadline := w.now + healSeconds*second
	var mark wal.LSN
	for w.failure == nil && w.now < deadline {
		w.startWriter(0)
		for until := w.now + 500*millisecond; w.failure == nil && w.step(until); {
		}
		x := w.writers[0]
		st := x.p.Status()
		switch {
		case w.failure != nil:
		case st.Phase == consensus.Leading && (mark == 0 || st.Tail < mark):
			w.append(0, 600)
			mark = x.p.Status().Tail
		case mark > 0 && st.Commit >= mark && w.converged(st):
			w.compare()
			return
		}
	}
	if w.failure == nil {
		w.stuck(mark)
	}
}

// converged reports whether every sound node has all there is and knows it committed.
func (w *world) converged(st consensus.ProposerStatus) bool {
	for _, n := range w.sound() {
		if n.loop == nil || n.acc.Status().Health != wal.Healthy || n.acc.Status().Flush != st.Tail || n.acc.Status().Commit != st.Commit {
			return false
		}
	}
	return st.Commit == st.Tail
}

// compare reads all sound copies back: they are the same, byte for byte.
func (w *world) compare() {
	end := w.first + wal.LSN(len(w.committed))
	for _, n := range w.sound() {
		oldest := n.log.OldestLSN()
		data, err := n.read(oldest, end)
		if err != nil || !bytes.Equal(data, w.committed[oldest-w.first:]) {
			w.fail("20 Liveness", "node %d does not hold the committed bytes [%v, %v) in the end: %v", n.id, oldest, end, err)
		}
	}
	for i := range w.consumers {
		c := &w.consumers[i]
		for was := c.next - 1; was != c.next; {
			was = c.next
			c.read(w.sound()[i%len(w.sound())])
		}
		if w.consumers[i].next != end {
			w.fail("18 NoSilentEnd", "a consumer has read up to %v, committed is %v", w.consumers[i].next, end)
		}
	}
}

func (w *world) stuck(mark wal.LSN) {
	st := w.writers[0].p.Status()
	detail := ""
	for _, n := range w.nodes {
		if n.loop == nil {
			detail += "; a node is down"
			continue
		}
		s := n.acc.Status()
		detail += "; node " + n.id2() + " is " + s.Health.String() + ", ends at " + s.Flush.String() + ", commit " + s.Commit.String()
	}
	w.fail("20 Liveness", "%d s after all faults ended: proposer %d is %v in term %d, commit %v of %v, new bytes up to %v%s",
		healSeconds, w.writers[0].id, st.Phase, st.Term, st.Commit, st.Tail, mark, detail)
}

func (n *node) id2() string { return string(rune('0' + n.id)) }
