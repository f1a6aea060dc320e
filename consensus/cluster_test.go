package consensus

import (
	"fmt"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// cluster is a small world around the production state machines: nodes with
// the bytes they hold, writers with the bytes they handed out, and connections
// between them. It is a value that can be branched: clone shares everything,
// and what an event changes is copied first.
//
// A byte's value is the id of the writer instance that handed it out, so a
// log is a short string and two logs are compared by looking at them.
type cluster struct {
	membership wal.Membership
	first      wal.LSN

	// atomic settles every reply at once and closes both ends of a connection
	// together. Otherwise messages stay in flight, in order, per connection.
	atomic bool
	// noHorizon leaves the horizon out, which makes fewer states.
	noHorizon bool

	nodes   []*node
	writers []*writer
	conns   []conn
	streams StreamID
	writerN byte // instances made so far

	// What has happened, for the invariants.
	won           []byte // by term: which instance won it, 0 if none
	committed     string // every byte ever committed
	committedTerm []wal.Term
	broken        string                           // the first invariant that does not hold
	tell          func(format string, args ...any) // nil unless somebody listens
}

type node struct {
	*Acceptor
	log string // the bytes from first on, as its disk holds them
}

type writer struct {
	*Proposer
	id     byte
	base   wal.LSN // where window begins
	window string  // what was handed out
	ghost  string  // the donor's log up to this term's start
	votes  [nodesMax]string
	sent   [nodesMax]sentTo
	truth  [nodesMax]wal.LSN // flush LSN really acknowledged in this term
}

const nodesMax = 5

type sentTo struct {
	connection uint64
	next       wal.LSN
}

// conn is one connection of one writer to one node.
type conn struct {
	writer, node int
	number       uint64
	stream       StreamID
	up, down     []packet // in flight, oldest first
	atWriter     bool     // open as far as the writer knows
	atNode       bool
}

type packet struct {
	Message
	log string // of the node, when it voted
}

func writerID(id byte) wal.ProposerID { return wal.ProposerID{id} }

func newCluster(members wal.Membership, first wal.LSN, writers int) *cluster {
	c := &cluster{membership: members, first: first, atomic: true}
	all := slices.Clone(members.Members)
	for _, m := range members.NewMembers {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	st := wal.State{Creation: wal.CreationID{1}, FirstLSN: first, Membership: members, Commit: first, Horizon: first}
	for _, m := range all {
		c.nodes = append(c.nodes, &node{Acceptor: newNode(m.ID, st, first)})
	}
	for range writers {
		c.writers = append(c.writers, c.newWriter())
	}
	return c
}

func newNode(id wal.NodeID, st wal.State, flush wal.LSN) *Acceptor {
	return NewAcceptor(AcceptorConfig{Node: id, Timeline: clusterTimeline, RequestBytesMax: 1 << 16}, st, flush, wal.Healthy)
}

var clusterTimeline = wal.TimelineID{Tenant: "t", Timeline: "l"}

func (c *cluster) newWriter() *writer {
	c.writerN++
	return &writer{
		Proposer: NewProposer(ProposerConfig{
			ID: writerID(c.writerN), Timeline: clusterTimeline, Creation: wal.CreationID{1},
			Membership: c.membership, Jitter: func(int) int { return 0 },
		}),
		id: c.writerN,
	}
}

func (c *cluster) clone() *cluster {
	d := *c
	d.nodes, d.writers = slices.Clone(c.nodes), slices.Clone(c.writers)
	d.conns = slices.Clone(c.conns)
	d.won, d.committedTerm = slices.Clip(c.won), slices.Clip(c.committedTerm)
	return &d
}

// touchNode returns node n for changing.
func (c *cluster) touchNode(n int) *node {
	x := *c.nodes[n]
	x.Acceptor = x.clone()
	c.nodes[n] = &x
	return &x
}

func (c *cluster) touchWriter(w int) *writer {
	x := *c.writers[w]
	x.Proposer = x.clone()
	c.writers[w] = &x
	return &x
}

func (c *cluster) nodeIndex(id wal.NodeID) int {
	return slices.IndexFunc(c.nodes, func(x *node) bool { return x.config.Node == id })
}

// open is the index of the connection that writer w believes it has to node n, -1 if none.
func (c *cluster) open(w, n int) int {
	return slices.IndexFunc(c.conns, func(k conn) bool { return k.writer == w && k.node == n && k.atWriter })
}

func (c *cluster) connect(w, n int) {
	x := c.touchWriter(w)
	g := x.Connect(c.nodes[n].config.Node)
	if g == nil {
		return
	}
	if k := c.open(w, n); k >= 0 {
		c.conns[k].atWriter = false
	}
	c.streams++
	c.conns = append(c.conns, conn{writer: w, node: n, number: g.Connection, stream: c.streams, up: []packet{{Message: g}}, atWriter: true, atNode: true})
	if c.atomic {
		c.deliverUp(len(c.conns) - 1)
	}
	c.settle()
}

// collect queues what a writer wants sent.
func (c *cluster) collect(w int) {
	for _, o := range c.writers[w].Outputs() {
		k := slices.IndexFunc(c.conns, func(k conn) bool {
			return k.writer == w && k.atWriter && k.number == o.Connection && c.nodes[k.node].config.Node == o.Node
		})
		switch {
		case k < 0:
		case o.Message == nil:
			c.conns[k].atWriter = false
			c.say("%s hangs up on %d", name(c.writers[w].id), o.Node)
		default:
			c.conns[k].up = append(slices.Clip(c.conns[k].up), packet{Message: o.Message})
		}
	}
}

// deliverUp gives the oldest message of a connection to its node, which performs it at once.
func (c *cluster) deliverUp(k int) {
	m := c.conns[k].up[0]
	c.conns[k].up = c.conns[k].up[1:]
	if c.tell != nil {
		c.tell("%s -> %d  %s", name(c.writers[c.conns[k].writer].id), c.nodes[c.conns[k].node].config.Node, describe(m.Message))
	}
	n := c.touchNode(c.conns[k].node)
	var b Batch
	if !n.Step(c.conns[k].stream, m.Message, &b) {
		c.fail("an empty batch refused a message")
		return
	}
	c.perform(c.conns[k].node, &b)
}

// perform does what a batch asks for, in the order of its contract.
func (c *cluster) perform(i int, b *Batch) {
	n, before := c.nodes[i], c.nodes[i].clone()
	old := n.log
	if b.Save != nil {
		n.log = n.log[:b.SaveEnd-c.first]
	}
	for _, chunk := range b.Appends {
		if chunk.Begin != c.first+wal.LSN(len(n.log)) {
			c.fail("node %d writes a chunk at %v, its log ends at %v", n.config.Node, chunk.Begin, c.first+wal.LSN(len(n.log)))
		}
		n.log += string(chunk.Data)
	}
	n.Flushed(b)
	for _, r := range b.Replies {
		k := slices.IndexFunc(c.conns, func(k conn) bool { return k.node == i && k.stream == r.Stream })
		if k < 0 {
			continue
		}
		p := packet{Message: r.Message, log: n.log}
		if a, ok := r.Message.(*AppendResponse); ok {
			own := *a
			p.Message = &own
			w := c.conns[k].writer
			if a.Term == c.writers[w].term && a.Flush > c.writers[w].truth[i] {
				c.touchWriter(w).truth[i] = a.Flush
			}
		}
		c.conns[k].down = append(slices.Clip(c.conns[k].down), p)
	}
	for _, e := range b.Ends {
		if k := slices.IndexFunc(c.conns, func(k conn) bool { return k.node == i && k.stream == e.Stream }); k >= 0 {
			c.conns[k].atNode = false
			c.say("%d ends the stream of %s: %s", n.config.Node, name(c.writers[c.conns[k].writer].id), e.Err.Reason)
		}
	}
	c.checkNodeStep(before, old, n, b)
}

// deliverDown gives the oldest answer of a connection to its writer.
func (c *cluster) deliverDown(k int) {
	m := c.conns[k].down[0]
	c.conns[k].down = c.conns[k].down[1:]
	w, n := c.conns[k].writer, c.conns[k].node
	if c.tell != nil {
		c.tell("%d -> %s  %s", c.nodes[n].config.Node, name(c.writers[w].id), describe(m.Message))
	}
	if !c.conns[k].atWriter {
		return
	}
	before := c.writers[w]
	x := c.touchWriter(w)
	if _, ok := m.Message.(*VoteResponse); ok {
		x.votes[n] = m.log
	}
	x.Step(c.nodes[n].config.Node, c.conns[k].number, m.Message)
	c.checkWriterStep(before, x)
	c.collect(w)
}

// settle does what happens by itself.
func (c *cluster) settle() {
	for w := range c.writers {
		c.collect(w)
	}
	for again := c.atomic; again; {
		again = false
		for k := range c.conns {
			if len(c.conns[k].down) > 0 {
				c.deliverDown(k)
				again = true
			}
			if c.conns[k].atWriter != c.conns[k].atNode {
				c.cut(k)
				again = true
			}
		}
	}
	c.conns = slices.DeleteFunc(c.conns, func(k conn) bool {
		return !k.atWriter && !k.atNode && (c.atomic || len(k.up) == 0) // late messages may still come
	})
}

// cut ends a connection at both ends and loses what was in flight.
func (c *cluster) cut(k int) {
	x := &c.conns[k]
	if x.atNode {
		c.touchNode(x.node).Close(x.stream)
	}
	if x.atWriter {
		c.touchWriter(x.writer).Disconnect(c.nodes[x.node].config.Node, x.number)
	}
	x.atNode, x.atWriter, x.up, x.down = false, false, nil, nil
}

// write hands out one more byte.
func (c *cluster) write(w int) {
	x := c.touchWriter(w)
	x.window += string(x.id)
	x.Handed(x.base + wal.LSN(len(x.window)))
}

// full is the log of a writer's present term.
func (x *writer) full(first wal.LSN) string {
	log := x.ghost
	if end := first + wal.LSN(len(log)); x.base <= end && end-x.base < wal.LSN(len(x.window)) {
		log += x.window[end-x.base:]
	}
	return log
}

// next is what writer w would send node n now: the byte at the position up to
// which it has sent, nil if there is none to be had.
func (c *cluster) next(w, n int) *AppendRequest {
	x := c.writers[w]
	s, ok := x.Stream(c.nodes[n].config.Node)
	if !ok {
		return nil
	}
	at := s.Resume
	if x.sent[n].connection == s.Connection {
		at = x.sent[n].next
	}
	r := &AppendRequest{Generation: s.Generation, Term: s.Term, Begin: at, Commit: x.commit, Horizon: c.horizonOf(x)}
	switch {
	case at >= x.base && at-x.base < wal.LSN(len(x.window)):
		r.Data = []byte{x.window[at-x.base]}
	case at < x.start:
		source := c.source(x, n, at)
		if source == nil || source.StoredLastTerm() != x.term || at >= source.flush {
			return nil // A6
		}
		r.Data = []byte{source.log[at-c.first]}
	default:
		return nil
	}
	r.CRC = wal.Checksum(r.Data)
	return r
}

// source is where x reads a byte that node n lacks. Of several that will do,
// an atomic cluster, whose nodes have no order, takes one that can answer.
func (c *cluster) source(x *writer, n int, at wal.LSN) *node {
	id, ok := x.Source(c.nodes[n].config.Node, at)
	if !ok {
		return nil
	}
	for i, o := range c.nodes {
		if p := x.peer(o.config.Node); c.atomic && i != n && p.adopted && p.acked > at && o.StoredLastTerm() == x.term {
			return o
		}
	}
	return c.nodes[c.nodeIndex(id)]
}

// feed sends the next byte to a node.
func (c *cluster) feed(w, n int) {
	r := c.next(w, n)
	x := c.touchWriter(w)
	k := c.open(w, n)
	x.sent[n] = sentTo{c.conns[k].number, r.Begin + 1}
	c.conns[k].up = append(slices.Clip(c.conns[k].up), packet{Message: r})
}

// beat sends a heartbeat.
func (c *cluster) beat(w, n int) {
	x := c.writers[w]
	s, _ := x.Stream(c.nodes[n].config.Node)
	k := c.open(w, n)
	c.conns[k].up = append(slices.Clip(c.conns[k].up), packet{Message: &AppendRequest{
		Generation: s.Generation, Term: s.Term, Begin: s.Resume, Commit: x.commit, Horizon: c.horizonOf(x)}})
}

// horizonOf is the horizon that x announces, 0 in a world that leaves it out.
func (c *cluster) horizonOf(x *writer) wal.LSN {
	if c.noHorizon {
		return 0
	}
	return x.horizon
}

// batch lets one turn of a node take what waits on all its connections.
func (c *cluster) batch(n int) {
	x := c.touchNode(n)
	var b Batch
	for k := range c.conns {
		for c.conns[k].node == n && len(c.conns[k].up) > 0 {
			m := c.conns[k].up[0]
			if !x.Step(c.conns[k].stream, m.Message, &b) {
				break
			}
			if c.tell != nil {
				c.tell("%s -> %d  %s", name(c.writers[c.conns[k].writer].id), x.config.Node, describe(m.Message))
			}
			c.conns[k].up = c.conns[k].up[1:]
		}
	}
	c.perform(n, &b)
}

// crash loses what a node has in memory. Answers that are under way may still
// arrive where messages stay in flight.
func (c *cluster) crash(n int) {
	for k := range c.conns {
		if c.conns[k].node == n && c.atomic {
			c.cut(k)
		} else if c.conns[k].node == n {
			c.conns[k].atNode, c.conns[k].up = false, nil
		}
	}
	old := c.nodes[n]
	x := &node{Acceptor: newNode(old.config.Node, old.state, old.flush), log: old.log}
	c.nodes[n] = x
	c.checkNodeStep(old.Acceptor, old.log, x, &Batch{})
}

// restart replaces a writer by a new instance.
func (c *cluster) restart(w int) {
	for k := range c.conns {
		if c.conns[k].writer == w {
			c.cut(k)
		}
	}
	c.writers[w] = c.newWriter()
}

// expire lets time pass until the present phase is given up or the wait is over.
func (c *cluster) expire(w int) {
	x := c.touchWriter(w)
	for phase, i := x.phase, 0; x.phase == phase && i < 1000; i++ {
		x.Tick()
	}
	c.collect(w)
}

func (c *cluster) say(format string, args ...any) {
	if c.tell != nil {
		c.tell(format, args...)
	}
}

func (c *cluster) fail(format string, args ...any) {
	if c.broken == "" {
		c.broken = fmt.Sprintf(format, args...)
	}
}

func name(id byte) string { return string('A' + rune(id) - 1) }
