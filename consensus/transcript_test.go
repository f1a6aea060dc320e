package consensus

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestTranscripts plays the files of testdata: what is asked, and below the
// line of dashes what the state machines did. testdata/README.md says how to
// read them. "go test ./consensus -rewrite" writes the answers anew; a changed
// answer is a changed rule and needs its reason in the commit.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var s stage
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			s.t = t
			s.command(t, d)
			if s.cluster != nil && s.broken != "" {
				t.Fatalf("%s: %s", d.Pos, s.broken)
			}
			return s.out.String()
		})
	})
}

// stage is what one transcript plays on.
type stage struct {
	*cluster
	t       *testing.T
	out     strings.Builder
	streams map[string]StreamID // of messages written by hand, by "A#1"
	spoken  map[StreamID]string
	alone   map[string]*Proposer // proposers that talk to nobody but the transcript
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *stage) command(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "cluster":
		s.build(d)
	case "turn", "turns":
		s.hand(d)
	case "proposer":
		s.script(d)
	case "play":
		for line := range strings.Lines(d.Input) {
			s.play(d, strings.Fields(line))
		}
	case "status":
		s.status()
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
}

func (s *stage) build(d *datadriven.TestData) {
	members, joint, writers, first := 3, "", 2, "100"
	d.MaybeScanArgs(s.t, "members", &members)
	d.MaybeScanArgs(s.t, "joint", &joint)
	d.MaybeScanArgs(s.t, "writers", &writers)
	d.MaybeScanArgs(s.t, "first", &first)
	m := wal.Membership{Generation: 1}
	for i := range members {
		m.Members = append(m.Members, wal.Member{ID: wal.NodeID(i + 1)})
	}
	for id := range strings.FieldsFuncSeq(joint, func(r rune) bool { return r == '/' }) {
		m.NewMembers = append(m.NewMembers, wal.Member{ID: wal.NodeID(number(id))})
	}
	s.cluster = newCluster(m, lsn(first), writers)
	s.atomic = false
	s.tell = s.say
	s.streams, s.spoken, s.alone = map[string]StreamID{}, map[StreamID]string{}, map[string]*Proposer{}
}

// hand gives messages written by hand to one node, each in a turn of its own
// ("turns") or as many in one turn as the node takes ("turn").
func (s *stage) hand(d *datadriven.TestData) {
	id := 1
	d.MaybeScanArgs(s.t, "node", &id)
	n := s.touchNode(id - 1)
	var b Batch
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		switch f[0] {
		case "quiet":
			s.turn(n, &b)
			n.Quiet(&b)
		case "fail":
			// The disk fails before the messages above are durable.
			s.ends(n, &b, func() { n.Fail(&b) })
			continue
		case "restart":
			b.Reset()
			n = &node{Acceptor: newNode(n.config.Node, n.state, n.flush), log: n.log[:n.flush-s.first]}
			s.nodes[id-1] = n
			s.say("node %d starts again: term %d, history %s, flush %s, commit %s", id, n.state.Term, terms(n.state.History), short(n.flush), short(n.commit))
			continue
		case "quarantine":
			s.ends(n, &b, func() { n.Quarantine(&b) })
			continue
		case "lost":
			n.health = wal.Lost
			continue
		case "peer":
			m := &PeerCommit{Creation: wal.CreationID{1}, LastLogTerm: wal.Term(number(arg(f, "term", "0"))), Commit: lsn(arg(f, "commit", "0"))}
			if arg(f, "creation", "1") != "1" {
				m.Creation = wal.CreationID{2}
			}
			n.Step(0, m, &b)
		default:
			stream, m := s.message(f)
			if !n.Step(stream, m, &b) {
				s.say("(the turn is full)")
				s.turn(n, &b)
				n.Step(stream, m, &b)
			}
		}
		if d.Cmd == "turns" {
			s.turn(n, &b)
		}
	}
	s.turn(n, &b)
}

func (s *stage) ends(n *node, b *Batch, f func()) {
	b.Reset()
	f()
	s.say("node %d is %v; %d streams end", n.config.Node, n.health, len(b.Ends))
	b.Reset()
}

// turn performs a batch and says what it did.
func (s *stage) turn(n *node, b *Batch) {
	if b.Empty() {
		return
	}
	quiet := true
	if b.Save != nil {
		cut := ""
		if b.SaveEnd < n.write {
			cut = ", which cuts the log there"
		}
		s.say("save term %d of %s, history %s, commit %s, horizon %s, log end %s%s", b.Save.Term, proposerName(b.Save.VotedFor),
			terms(b.Save.History), short(b.Save.Commit), short(b.Save.Horizon), short(b.SaveEnd), cut)
		quiet = false
	}
	for _, c := range b.Appends {
		s.say("append %s %q in term %d", short(c.Begin), c.Data, b.Term)
		quiet = false
	}
	if !quiet {
		s.say("sync")
	}
	if b.Save != nil {
		n.log = n.log[:b.SaveEnd-s.first]
	}
	for _, c := range b.Appends {
		n.log += string(c.Data)
	}
	n.Flushed(b)
	for _, r := range b.Replies {
		s.say("%s <- %s", s.spoken[r.Stream], describe(r.Message))
		quiet = false
	}
	for _, e := range b.Ends {
		s.say("%s ends: %v", s.spoken[e.Stream], e.Err)
		quiet = false
	}
	if quiet {
		s.say("nothing to do: commit %s, horizon %s", short(n.commit), short(n.horizon))
	}
	b.Reset()
}

// message reads "A#1 append term=2 begin=100 data=xyz".
func (s *stage) message(f []string) (StreamID, Message) {
	from, connection, _ := strings.Cut(f[0], "#")
	id, ok := s.streams[f[0]]
	if !ok || len(f) > 1 && f[1] == "greeting" && arg(f, "again", "") == "" {
		s.cluster.streams++
		id = s.cluster.streams
		s.streams[f[0]], s.spoken[id] = id, f[0]
	}
	generation := uint64(number(arg(f, "generation", "1")))
	term := wal.Term(number(arg(f, "term", "0")))
	system := uint64(number(arg(f, "system", "0")))
	switch f[1] {
	case "greeting":
		g := &Greeting{
			Version: uint32(number(arg(f, "version", "1"))), Timeline: clusterTimeline, Creation: wal.CreationID{byte(number(arg(f, "creation", "1")))},
			Proposer: writerID(from[0] - 'A' + 1), Connection: uint64(number(connection)), SystemID: system, Membership: s.membership,
		}
		g.Membership.Generation = generation
		if m := arg(f, "members", ""); m != "" {
			g.Membership.Members = nil
			for id := range strings.SplitSeq(m, "/") {
				g.Membership.Members = append(g.Membership.Members, wal.Member{ID: wal.NodeID(number(id))})
			}
		}
		return id, g
	case "vote":
		return id, &VoteRequest{Generation: generation, Term: term}
	case "elected":
		return id, &Elected{Generation: generation, Term: term, Resume: lsn(arg(f, "resume", "0")), History: history(arg(f, "history", "")), SystemID: system,
			Properties: []byte(strings.Repeat("p", number(arg(f, "properties", "0"))))}
	case "append", "heartbeat":
		data := []byte(arg(f, "data", ""))
		r := &AppendRequest{Generation: generation, Term: term, Begin: lsn(arg(f, "begin", "0")), Commit: lsn(arg(f, "commit", "0")), Horizon: lsn(arg(f, "horizon", "0")), CRC: wal.Checksum(data), Data: data}
		if arg(f, "crc", "") == "wrong" {
			r.CRC++
		}
		if n := number(arg(f, "bytes", "0")); n > 0 {
			r.Data = make([]byte, n)
			r.CRC = wal.Checksum(r.Data)
		}
		return id, r
	}
	return id, &AcceptorGreeting{}
}

func proposerName(p wal.ProposerID) string {
	if p.IsZero() {
		return "nobody"
	}
	return name(p[0])
}

func arg(f []string, key, otherwise string) string {
	for _, a := range f {
		if v, ok := strings.CutPrefix(a, key+"="); ok {
			return v
		}
	}
	return otherwise
}

func number(s string) int {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%q is no number", s))
	}
	return int(n)
}

func lsn(s string) wal.LSN {
	if !strings.Contains(s, "/") {
		s = "0/" + s
	}
	l, err := wal.ParseLSN(s)
	if err != nil {
		panic(err)
	}
	return l
}

func history(s string) (h wal.History) {
	for e := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' }) {
		t, l, _ := strings.Cut(e, "@")
		h = append(h, wal.Position{Term: wal.Term(number(t)), LSN: lsn(l)})
	}
	return h
}
