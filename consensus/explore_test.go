package consensus

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

var depth = flag.String("holdfast.depth", os.Getenv("HOLDFAST_DEPTH"), "how far the exhaustive check and the walks go: short (default), ci, or long")

// bounds say which part of all runs is looked at.
type bounds struct {
	members  wal.Membership
	first    wal.LSN
	writers  int
	terms    wal.Term
	bytes    int // of log
	crashes  int // of nodes
	losses   int // connections cut, or an answer lost after its effect
	restarts int // of writers, as new instances

	noHorizon bool // leave the horizon out
	gossip    bool // acceptors tell each other what is committed, and save it
}

// idle reports whether a writer can do nothing more within the bounds: its
// next campaign would be in too high a term.
func (b *bounds) idle(w *writer) bool {
	switch w.phase {
	case Stopped:
		return true
	case Gathering, Waiting, Probing:
		return max(w.seenTerm, w.term) >= b.terms
	}
	return false
}

func (b bounds) String() string {
	s := fmt.Sprintf("%d acceptors, %d proposers, terms/log %d/%d", len(b.members.Members), b.writers, b.terms, b.bytes)
	for _, x := range []struct {
		n    int
		what string
	}{{b.crashes, "crashes"}, {b.losses, "losses"}, {b.restarts, "restarts"}} {
		if x.n > 0 {
			s += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	if len(b.members.NewMembers) > 0 {
		s += ", joint"
	}
	if b.noHorizon {
		s += ", no horizon"
	}
	if b.gossip {
		s += ", gossip"
	}
	return s
}

func (b *bounds) root() *point {
	p := &point{cluster: newCluster(b.members, b.first, b.writers)}
	p.noHorizon = b.noHorizon
	return p
}

func three() wal.Membership {
	return wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
}

// point is a cluster and how it was reached.
type point struct {
	*cluster
	from  *trail
	spent [3]int // crashes, losses, restarts
}

type trail struct {
	from  *trail
	event event
}

// event is one thing that can happen next.
type event struct {
	kind   kind
	writer int8
	node   int8
	conn   int8
}

type kind uint8

const (
	connecting kind = iota
	delivering
	answering
	writing
	feeding
	beating
	expiring
	cutting
	muting // a message takes effect and its answer is lost with the connection
	crashing
	restarting
	batching  // one turn takes what several connections have for a node
	quieting  // a node saves commit and horizon
	gossiping // node writer tells node node what is committed
	kinds
)

func (k kind) String() string {
	return [...]string{"connect", "deliver", "answer", "write", "feed", "beat", "expire", "cut", "mute", "crash", "restart", "batch", "quiet", "gossip"}[k]
}

func (e event) String() string {
	return fmt.Sprintf("%v writer %d node %d conn %d", e.kind, e.writer, e.node, e.conn)
}

// events lists what can happen next, in a fixed order.
func (p *point) events(b *bounds, out []event) []event {
	out = out[:0]
	for w, x := range p.writers {
		if b.idle(x) {
			if p.spent[2] < b.restarts {
				out = append(out, event{kind: restarting, writer: int8(w)})
			}
			continue
		}
		for n := range p.nodes {
			e := event{writer: int8(w), node: int8(n)}
			k := p.open(w, n)
			if k < 0 {
				e.kind = connecting
				out = append(out, e)
				continue
			}
			if _, ok := x.Stream(p.nodes[n].config.Node); ok && len(p.conns[k].up) < 2 {
				if p.next(w, n) != nil {
					e.kind = feeding
					out = append(out, e)
				} else if v := p.nodes[n]; v.commit < min(x.commit, v.flush) || v.horizon < min(p.horizonOf(x), v.commit) {
					e.kind = beating
					out = append(out, e)
				}
			}
		}
		e := event{writer: int8(w)}
		if x.phase == Leading && len(x.full(p.first)) < b.bytes {
			e.kind = writing
			out = append(out, e)
		}
		if x.phase != Leading && x.phase != Gathering {
			e.kind = expiring
			out = append(out, e)
		}
		if p.spent[2] < b.restarts {
			e.kind = restarting
			out = append(out, e)
		}
	}
	for k := range p.conns {
		e := event{conn: int8(k), writer: int8(p.conns[k].writer), node: int8(p.conns[k].node)}
		if len(p.conns[k].up) > 0 {
			e.kind = delivering
			out = append(out, e)
			if p.spent[1] < b.losses {
				e.kind = muting
				out = append(out, e)
			}
		}
		if len(p.conns[k].down) > 0 {
			e.kind = answering
			out = append(out, e)
		}
		if p.spent[1] < b.losses || !p.atomic && !(p.conns[k].atWriter && p.conns[k].atNode) {
			e.kind = cutting
			out = append(out, e)
		}
	}
	for n, x := range p.nodes {
		if !p.atomic && slices.ContainsFunc(p.conns, func(k conn) bool { return k.node == n && len(k.up) > 1 }) {
			out = append(out, event{kind: batching, node: int8(n)})
		}
		if !b.gossip {
			continue
		}
		if x.state.Commit < x.commit || x.state.Horizon < x.horizon {
			out = append(out, event{kind: quieting, node: int8(n)})
		}
		for m, y := range p.nodes {
			if x.commit > y.commit && x.visible().LastTerm() > 0 {
				out = append(out, event{kind: gossiping, writer: int8(n), node: int8(m)})
			}
		}
	}
	if p.spent[0] < b.crashes {
		for n := range p.nodes {
			out = append(out, event{kind: crashing, node: int8(n)})
		}
	}
	return out
}

// after returns where e leads; p is unchanged.
func (p *point) after(b *bounds, e event) *point {
	q := &point{cluster: p.clone(), from: &trail{p.from, e}, spent: p.spent}
	q.apply(b, e)
	return q
}

func (q *point) apply(b *bounds, e event) {
	w, n, k := int(e.writer), int(e.node), int(e.conn)
	switch e.kind {
	case connecting:
		q.connect(w, n)
	case delivering:
		for more := true; more && q.conns[k].atNode; more = q.atomic && len(q.conns[k].up) > 0 {
			q.deliverUp(k)
		}
		if !q.conns[k].atNode && len(q.conns[k].up) > 0 {
			q.conns[k].up = nil
		}
	case muting:
		q.spent[1]++
		for len(q.conns[k].up) > 0 {
			q.deliverUp(k)
		}
		q.cut(k)
	case answering:
		q.deliverDown(k)
	case writing:
		q.write(w)
	case feeding:
		q.feed(w, n)
		if k := q.open(w, n); q.atomic {
			q.deliverUp(k)
		}
	case beating:
		q.beat(w, n)
		if k := q.open(w, n); q.atomic {
			q.deliverUp(k)
		}
	case expiring:
		q.expire(w)
	case cutting:
		if q.conns[k].atWriter && q.conns[k].atNode {
			q.spent[1]++
		}
		q.cut(k)
	case crashing:
		q.spent[0]++
		q.crash(n)
	case restarting:
		q.spent[2]++
		q.restart(w)
	case batching:
		q.batch(n)
	case quieting:
		var batch Batch
		q.touchNode(n).Quiet(&batch)
		q.perform(n, &batch)
	case gossiping:
		from := q.nodes[w]
		var batch Batch
		q.touchNode(n).Step(0, &PeerCommit{Creation: wal.CreationID{1}, LastLogTerm: from.visible().LastTerm(), Commit: from.commit}, &batch)
		q.perform(n, &batch)
	}
	q.settle()
	// A wait in which nothing can happen is over at once.
	for w, x := range q.writers {
		if q.atomic && x.phase == Waiting {
			q.expire(w)
		}
	}
	q.settle()
	// What a writer that can do nothing more has under way is lost.
	for k := range q.conns {
		if q.atomic && b.idle(q.writers[q.conns[k].writer]) {
			q.cut(k)
		}
	}
	q.settle()
}

func (q *point) within(b *bounds) bool {
	for _, w := range q.writers {
		if w.term > b.terms || w.seenTerm > b.terms {
			return false
		}
	}
	return true
}

// found is a broken invariant and the way to it.
type found struct {
	what string
	path *trail
}

const shards = 64

type seenSet [shards]struct {
	sync.Mutex
	m map[stateKey]struct{}
}

func (s *seenSet) add(k stateKey) bool {
	sh := &s[k[0]%shards]
	sh.Lock()
	defer sh.Unlock()
	if _, ok := sh.m[k]; ok {
		return false
	}
	sh.m[k] = struct{}{}
	return true
}

// explore looks at every state within b, nearest first.
func explore(b bounds, limit time.Duration) (states, made, deep int, whole bool, bad *found) {
	root := b.root()
	var seen seenSet
	for i := range seen {
		seen[i].m = map[stateKey]struct{}{}
	}
	front := []*point{root}
	seen.add(new(scratch).key(root, &b))
	states = 1
	start := time.Now()
	defer debug.FreeOSMemory()
	for len(front) > 0 {
		workers := runtime.GOMAXPROCS(0)
		var wg sync.WaitGroup
		var mu sync.Mutex
		next := make([][]*point, workers)
		for i := range workers {
			wg.Go(func() {
				var s scratch
				var events []event
				n := 0
				for j := i; j < len(front); j += workers {
					events = front[j].events(&b, events)
					for _, e := range events {
						q := front[j].after(&b, e)
						n++
						if q.broken != "" {
							mu.Lock()
							if bad == nil {
								bad = &found{q.broken, q.from}
							}
							mu.Unlock()
							return
						}
						if q.within(&b) && seen.add(s.key(q, &b)) {
							next[i] = append(next[i], q)
						}
					}
					front[j] = nil
					if j%1024 < workers && time.Since(start) > limit {
						break
					}
				}
				mu.Lock()
				made += n
				mu.Unlock()
			})
		}
		wg.Wait()
		if bad != nil {
			return states, made, deep, false, bad
		}
		front = front[:0:0]
		for _, x := range next {
			front = append(front, x...)
			states += len(x)
		}
		deep++
		if time.Since(start) > limit {
			return states, made, deep, false, nil
		}
	}
	return states, made, deep, true, nil
}

// retell replays a path and says in words what happened.
func retell(b bounds, atomic bool, path *trail) string {
	var events []event
	for t := path; t != nil; t = t.from {
		events = append([]event{t.event}, events...)
	}
	var out strings.Builder
	q := b.root()
	q.atomic = atomic
	q.tell = func(format string, args ...any) { fmt.Fprintf(&out, "      "+format+"\n", args...) }
	for _, e := range events {
		fmt.Fprintf(&out, "  %v\n", e)
		q.apply(&b, e)
	}
	return out.String()
}

func TestExhaustive(t *testing.T) {
	type run struct {
		when string
		bounds
	}
	joint := wal.Membership{Generation: 2, Members: []wal.Member{{ID: 1}, {ID: 2}, {ID: 3}}, NewMembers: []wal.Member{{ID: 3}, {ID: 4}, {ID: 5}}}
	for _, r := range []run{
		{"short", bounds{members: three(), first: 1, writers: 2, terms: 2, bytes: 1, noHorizon: true}},
		{"short", bounds{members: three(), first: 1, writers: 1, terms: 2, bytes: 1, crashes: 1, losses: 1, restarts: 1}},
		{"ci", bounds{members: three(), first: 1, writers: 2, terms: 2, bytes: 2}},
		{"ci", bounds{members: three(), first: 1, writers: 1, terms: 2, bytes: 2, crashes: 1, losses: 1, restarts: 1}},
		{"ci", bounds{members: three(), first: 1, writers: 2, terms: 3, bytes: 2, noHorizon: true}},
		{"ci", bounds{members: three(), first: 1, writers: 2, terms: 2, bytes: 1, losses: 1, noHorizon: true}},
		{"ci", bounds{members: three(), first: 1, writers: 2, terms: 2, bytes: 1, crashes: 1, noHorizon: true, gossip: true}},
		{"long", bounds{members: joint, first: 1, writers: 2, terms: 2, bytes: 1, noHorizon: true}},
		{"long", bounds{members: three(), first: 1, writers: 2, terms: 2, bytes: 1, crashes: 1, losses: 1, gossip: true}},
		{"long", bounds{members: three(), first: 1, writers: 2, terms: 3, bytes: 3, noHorizon: true}},
	} {
		t.Run(r.String(), func(t *testing.T) {
			if rank(*depth) < rank(r.when) {
				t.Skipf("only with -holdfast.depth=%s", r.when)
			}
			// A world that takes longer than CI can give is looked at breadth-first
			// as far as it goes, and the log says that it is not complete.
			limit := 4 * time.Minute
			if *depth == "long" {
				limit = 2 * time.Hour
			}
			start := time.Now()
			states, made, deep, whole, bad := explore(r.bounds, limit)
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			t.Logf("%v: %d states, %d transitions, depth %d, complete %v, %.1f s, %d MB", r.bounds, states, made, deep, whole, time.Since(start).Seconds(), mem.Sys>>20)
			if bad != nil {
				t.Fatalf("%s\n%s", bad.what, retell(r.bounds, true, bad.path))
			}
		})
	}
}

func rank(depth string) int {
	switch depth {
	case "ci":
		return 1
	case "long":
		return 2
	}
	return 0
}
