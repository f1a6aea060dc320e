package consensus

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// play does one thing in the cluster.
func (s *stage) play(d *datadriven.TestData, f []string) {
	w := func(i int) int { return int(f[i][0] - 'A') }
	times := func(i int) int {
		if len(f) > i {
			return number(f[i])
		}
		return 1
	}
	switch f[0] {
	case "connect":
		for _, n := range f[2:] {
			s.connect(w(1), number(n)-1)
		}
	case "settle": // deliver everything, to everyone or to the nodes named
		s.deliverAll(f[1:])
	case "elect": // connect to the nodes named, and deliver what is between them
		for _, n := range f[2:] {
			s.connect(w(1), number(n)-1)
		}
		s.quietly(func() { s.deliverAll(f[2:]) })
		x := s.writers[w(1)]
		s.say("%s is %v in term %d, start %s", name(x.id), x.phase, x.term, short(x.start))
	case "write":
		for range times(2) {
			s.write(w(1))
		}
	case "feed": // send all that a node lacks
		for _, n := range f[2:] {
			for s.next(w(1), number(n)-1) != nil {
				s.cluster.feed(w(1), number(n)-1)
			}
		}
	case "beat":
		for _, n := range f[2:] {
			s.beat(w(1), number(n)-1)
		}
	case "deliver":
		for range times(3) {
			s.deliverUp(s.to(f[1], number(f[2])-1, true))
			s.cluster.settle()
		}
	case "answer":
		for range times(3) {
			s.deliverDown(s.to(f[1], number(f[2])-1, false))
			s.cluster.settle()
		}
	case "cut":
		for _, n := range f[2:] {
			s.cut(s.open(w(1), number(n)-1))
		}
		s.cluster.settle()
	case "disconnect": // only the writer notices; what it had sent is still under way
		x := s.touchWriter(w(1))
		k := s.open(w(1), number(f[2])-1)
		x.Disconnect(wal.NodeID(number(f[2])), s.conns[k].number)
		s.conns[k].atWriter = false
	case "expire":
		s.expire(w(1))
		s.cluster.settle()
		s.say("%s is %v", name(s.writers[w(1)].id), s.writers[w(1)].phase)
	case "crash":
		for _, n := range f[1:] {
			s.crash(number(n) - 1)
		}
		for k := range s.conns {
			if s.conns[k].atWriter && !s.conns[k].atNode {
				s.cut(k)
			}
		}
		s.cluster.settle()
	default:
		d.Fatalf(s.t, "unknown play %q", f[0])
	}
}

// to is a writer's connection to a node with something in flight: "A#2" its second, "A" the oldest.
func (s *stage) to(writer string, n int, up bool) int {
	_, which, _ := strings.Cut(writer, "#")
	for k, x := range s.conns {
		if x.writer == int(writer[0]-'A') && x.node == n && (which == "" || which == strconv.FormatUint(x.number, 10)) && (up && len(x.up) > 0 || !up && len(x.down) > 0) {
			return k
		}
	}
	panic("nothing is in flight there")
}

func (s *stage) deliverAll(only []string) {
	// only names nodes, or one writer and nodes
	writer := -1
	if len(only) > 0 && only[0] >= "A" {
		writer, only = int(only[0][0]-'A'), only[1:]
	}
	wanted := func(k conn) bool {
		return (writer < 0 || k.writer == writer) && (len(only) == 0 || slices.Contains(only, strconv.Itoa(k.node+1)))
	}
	for again := true; again; {
		again = false
		for k := 0; k < len(s.conns); k++ {
			x := &s.conns[k]
			switch {
			case !wanted(*x):
				continue
			case len(x.up) > 0:
				s.deliverUp(k)
			case len(x.down) > 0:
				s.deliverDown(k)
			case x.atWriter != x.atNode:
				s.cut(k)
			default:
				continue
			}
			again = true
		}
	}
	s.cluster.settle()
}

func (s *stage) quietly(f func()) {
	s.tell = nil
	f()
	s.tell = s.say
}

func letters(log string) string {
	var b strings.Builder
	for _, c := range []byte(log) {
		b.WriteString(name(c))
	}
	return b.String()
}

func (s *stage) status() {
	for _, n := range s.nodes {
		s.say("node %d: term %d of %s, history %s, flush %s, commit %s, horizon %s, log %q", n.config.Node, n.state.Term, proposerName(n.state.VotedFor),
			terms(n.state.History), short(n.flush), short(n.commit), short(n.horizon), letters(n.log))
	}
	for _, x := range s.writers {
		if x.term > 0 {
			s.say("%s: %v in term %d, start %s, commit %s, horizon %s, handed out %q from %s", name(x.id), x.phase, x.term, short(x.start), short(x.commit), short(x.horizon), letters(x.window), short(x.base))
		}
		if x.err != nil {
			s.say("%s: %v", name(x.id), x.err)
		}
	}
}

// script talks to one proposer by hand.
func (s *stage) script(d *datadriven.TestData) {
	var id string
	decide := d.HasArg("decide")
	d.ScanArgs(s.t, "id", &id)
	p := s.alone[id]
	if p == nil {
		p = NewProposer(ProposerConfig{ID: writerID(id[0] - 'A' + 1), Timeline: clusterTimeline, Creation: wal.CreationID{1}, Membership: s.membership, Decide: decide, Jitter: func(int) int { return 0 }})
		s.alone[id] = p
	}
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		before := p.Status()
		s.line(p, f)
		after := p.Status()
		for _, o := range p.Outputs() {
			if o.Message == nil {
				s.say("   hangs up on %d", o.Node)
			} else {
				s.say("   -> %d#%d  %s", o.Node, o.Connection, describe(o.Message))
			}
		}
		if before.Phase != after.Phase {
			s.say("   %v in term %d, start %s", after.Phase, after.Term, short(after.Start))
		}
		if after.Commit != before.Commit || after.Horizon != before.Horizon {
			s.say("   commit %s, horizon %s", short(after.Commit), short(after.Horizon))
		}
		var fenced *FencedError
		if after.Err != nil && before.Err == nil {
			s.say("   stopped: %v (fenced %v)", after.Err, errors.As(after.Err, &fenced))
		}
	}
}

func (s *stage) line(p *Proposer, f []string) {
	s.say("%s", strings.Join(f, " "))
	switch f[0] {
	case "connect":
		for _, n := range f[1:] {
			p.Connect(wal.NodeID(number(n)))
		}
		return
	case "tick":
		for range number(f[1]) {
			p.Tick()
		}
		return
	case "handed":
		p.Handed(lsn(f[1]))
		return
	case "lead":
		if err := p.Lead(Decision{Start: lsn(f[1])}); err != nil {
			s.say("   %v", err)
		}
		return
	case "election":
		e := p.Election()
		s.say("   term %d, donor %d, start %s, history %s, commit %s, horizon %s, may be committed %s", e.Term, e.Donor, short(e.Start), terms(e.History), short(e.Commit), short(e.Horizon), short(e.MayBeCommitted))
		return
	case "peers":
		for _, x := range p.Peers() {
			s.say("   %d: connected %v, adopted %v, acked %s, heard %v", x.Node, x.Connected, x.Adopted, short(x.Acked), x.Heard)
		}
		return
	case "source":
		n, ok := p.Source(wal.NodeID(number(f[1])), lsn(f[2]))
		s.say("   %d %v", n, ok)
		return
	case "distrust":
		p.Distrust(wal.NodeID(number(f[1])))
		return
	}
	node := wal.NodeID(number(f[0]))
	connection := uint64(0)
	if x := p.peer(node); x != nil {
		connection = x.connection
	}
	connection = uint64(number(arg(f, "connection", itoa(connection))))
	term := wal.Term(number(arg(f, "term", "0")))
	flush, commit, horizon := lsn(arg(f, "flush", "100")), lsn(arg(f, "commit", "100")), lsn(arg(f, "horizon", "100"))
	switch f[1] {
	case "greets":
		g := &AcceptorGreeting{Node: node, Creation: wal.CreationID{byte(number(arg(f, "creation", "1")))}, Term: term}
		for h := wal.Poisoned; h <= wal.Lost; h++ {
			if arg(f, "health", "") == h.String() {
				g.Health = h
			}
		}
		p.Step(node, connection, g)
	case "grants", "refuses":
		p.Step(node, connection, &VoteResponse{Term: term, Granted: f[1] == "grants", Flush: flush, Commit: commit, Horizon: horizon, History: history(arg(f, "history", ""))})
	case "acks":
		p.Step(node, connection, &AppendResponse{Term: term, Flush: flush, Commit: commit})
	case "closes":
		p.Disconnect(node, connection)
	}
}

func itoa(n uint64) string { return strings.TrimPrefix(wal.LSN(n).String(), "0/") }
