package sim

import (
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// world is one run.
type world struct {
	shape
	seed  uint64
	r     *rand.Rand // of the checks only
	trace io.Writer  // nil: nobody listens

	now     int64
	timers  timers
	planned uint64
	events  int
	digest  uint64 // of all that was noted

	nodes     []*node
	writers   []*writer // by slot; nil before the first instance
	consumers []consumer
	conns     []*conn
	cuts      [][][2]int64 // by slot, node, direction: until when
	instances int

	// The books.
	ledgers   map[wal.Term]*ledger
	committed []byte // from first on
	commits   []commitment
	known     map[int]wal.LSN // by proposer instance: the commit it last knew
	refusals  map[consensus.Reason]int
	elections int
	appends   int
	crashes   int
	failure   *Failure
}

func (w *world) nodes_() int { return len(w.nodes) }

// newWorld makes the world of a seed: acceptors with an empty timeline, and nobody who writes.
func newWorld(seed uint64, s shape, trace io.Writer) *world {
	w := &world{
		shape: s, seed: seed, r: chance(seed, chanceCheck, 0, 0, 0), trace: trace,
		ledgers: map[wal.Term]*ledger{}, known: map[int]wal.LSN{}, refusals: map[consensus.Reason]int{},
		writers: make([]*writer, s.slots), consumers: make([]consumer, 2),
	}
	for i := range w.consumers {
		w.consumers[i] = consumer{w: w, next: s.first}
	}
	w.cuts = make([][][2]int64, s.slots)
	for i := range w.cuts {
		w.cuts[i] = make([][2]int64, s.nodes)
	}
	for i := range s.nodes {
		n := &node{w: w, index: i, id: wal.NodeID(i + 1)}
		w.nodes = append(w.nodes, n)
		if err := n.create(); err != nil {
			w.fail("Create", "node %d: %v", n.id, err)
			return w
		}
		n.start()
	}
	return w
}

// run performs the script and then heals the world.
func (w *world) run(script []step) {
	for _, s := range script {
		w.after(s.At, func() {
			w.note(s.Do.String(), s.A, s.B, s.C)
			w.perform(s)
		})
	}
	for w.failure == nil && w.step(w.length) {
	}
	if w.failure == nil {
		w.heal()
	}
}

// note adds what happens to the digest and to the trace.
func (w *world) note(what string, a, b, c int) {
	h := w.digest ^ uint64(w.now)
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * 0x100000001B3
	}
	w.digest = mix(h ^ mix(uint64(a)) ^ mix(uint64(b)+1<<40) ^ mix(uint64(c)+1<<50))
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%7d %10.3f ms  %s %d %d %d\n", w.events, float64(w.now)/millisecond, what, a, b, c)
	}
}

// noteMessage adds a delivered message likewise.
func (w *world) noteMessage(arrow string, k *conn, m consensus.Message) {
	h := mix(w.digest ^ uint64(w.now) ^ uint64(arrow[0])<<60)
	switch m := m.(type) {
	case *consensus.VoteResponse:
		h ^= mix(uint64(m.Term)<<1 ^ uint64(b2i(m.Granted)) ^ uint64(m.Flush)<<20)
	case *consensus.Elected:
		h ^= mix(uint64(m.Term)<<2 ^ uint64(m.Resume)<<20)
	case *consensus.AppendRequest:
		h ^= mix(uint64(m.Term)<<3 ^ uint64(m.Begin)<<20 ^ uint64(len(m.Data)) ^ uint64(m.Commit)<<40)
	case *consensus.AppendResponse:
		h ^= mix(uint64(m.Term)<<4 ^ uint64(m.Flush)<<20)
	}
	w.digest = mix(h ^ uint64(k.writer.id)<<8 ^ uint64(k.node.index) ^ k.number<<16)
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%7d %10.3f ms  P%d %s N%d #%d  %s\n", w.events, float64(w.now)/millisecond, k.writer.id, arrow, k.node.id, k.number, describe(m))
	}
}

func describe(m consensus.Message) string {
	switch m := m.(type) {
	case *consensus.Greeting:
		return "Greeting"
	case *consensus.VoteRequest:
		return fmt.Sprintf("VoteRequest term %d", m.Term)
	case *consensus.Elected:
		return fmt.Sprintf("Elected term %d resume %v history %v", m.Term, m.Resume, m.History)
	case *consensus.AppendRequest:
		return fmt.Sprintf("AppendRequest term %d [%v, +%d) commit %v horizon %v", m.Term, m.Begin, len(m.Data), m.Commit, m.Horizon)
	case *consensus.AcceptorGreeting:
		return fmt.Sprintf("AcceptorGreeting term %d flush %v commit %v %v", m.Term, m.Flush, m.Commit, m.Health)
	case *consensus.VoteResponse:
		return fmt.Sprintf("VoteResponse term %d granted %v flush %v commit %v history %v", m.Term, m.Granted, m.Flush, m.Commit, m.History)
	case *consensus.AppendResponse:
		return fmt.Sprintf("AppendResponse term %d flush %v commit %v", m.Term, m.Flush, m.Commit)
	}
	return fmt.Sprintf("%T", m)
}
