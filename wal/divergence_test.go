package wal

import (
	"errors"
	"testing"
)

func TestDivergence(t *testing.T) {
	for _, c := range []struct {
		name               string
		proposer, acceptor History
		flush, want        LSN
	}{
		{"first election of an empty log", History{{1, 10}}, nil, 10, 10},
		{"an acceptor that has this term lacks only the tail", History{{1, 10}, {2, 20}}, History{{1, 10}, {2, 20}}, 35, 35},
		{"an acceptor that is behind the start", History{{1, 10}, {2, 20}}, History{{1, 10}}, 15, 15},
		{"an acceptor that ends at the start", History{{1, 10}, {2, 20}}, History{{1, 10}}, 20, 20},
		{"a tail that the winner never saw", History{{1, 10}, {2, 20}}, History{{1, 10}}, 30, 20},
		{"a tail of a term that lost", History{{1, 10}, {3, 20}}, History{{1, 10}, {2, 15}}, 30, 15},
		{"a losing term that began where the winner did", History{{1, 10}, {3, 20}}, History{{1, 10}, {2, 20}}, 30, 20},
		{"a losing term that began beyond the winner's start", History{{1, 10}, {3, 20}}, History{{1, 10}, {2, 25}}, 30, 20},
		{"terms that the acceptor missed", History{{1, 10}, {2, 20}, {4, 30}, {6, 40}}, History{{1, 10}, {3, 20}, {5, 22}}, 60, 20},
		{"the highest of several common terms", History{{1, 10}, {2, 20}, {4, 30}}, History{{1, 10}, {2, 20}, {3, 25}}, 60, 25},
		{"nothing in common", History{{2, 10}}, History{{1, 10}}, 60, 10},
		{"an acceptor that went on in a later term", History{{1, 10}}, History{{1, 10}, {2, 20}}, 30, 20},
		{"both folded", History{{4, 30}, {6, 50}}, History{{2, 20}, {4, 30}}, 40, 40},
	} {
		got, err := Divergence(c.proposer, c.acceptor, c.flush)
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

func TestDivergenceOfHistoriesThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		name               string
		proposer, acceptor History
		flush              LSN
	}{
		{"no proposer history", nil, History{{1, 0}}, 5},
		{"one term at two positions", History{{1, 0}, {2, 10}}, History{{1, 0}, {2, 11}}, 20},
		{"the log ends before the proposer's first entry", History{{3, 50}}, History{{1, 0}}, 20},
		{"the log ends before the common term ends elsewhere", History{{3, 50}, {4, 60}}, History{{3, 50}}, 20},
	} {
		got, err := Divergence(c.proposer, c.acceptor, c.flush)
		var want *DivergenceError
		if c.name == "the log ends before the common term ends elsewhere" {
			// The acceptor's own end is the smaller one: nothing above it is claimed.
			if err != nil || got > c.flush {
				t.Errorf("%s: %v, %v", c.name, got, err)
			}
			continue
		}
		if !errors.As(err, &want) {
			t.Errorf("%s: %v, %v; want a *DivergenceError", c.name, got, err)
		}
	}
}

// explicit is a log with the term of every byte written out, and the history
// that a correct run keeps beside it.
type explicit struct {
	terms   []Term // of each byte
	history History
}

func (l explicit) cut(end int) explicit {
	return explicit{l.terms[:end:end], l.history.Visible(LSN(end))}
}

func (l explicit) begin(term Term, at int) explicit {
	c := l.cut(at)
	return explicit{c.terms, l.history.Extend(term, LSN(at))}
}

func (l explicit) write(n int) explicit {
	for range n {
		l.terms = append(l.terms[:len(l.terms):len(l.terms)], l.history.LastTerm())
	}
	return l
}

// FuzzDivergence makes logs as elections do, each term continuing some
// earlier log from somewhere, and compares Divergence with a comparison byte
// by byte. Both histories may have been folded anywhere below what is common.
func FuzzDivergence(f *testing.F) {
	f.Add([]byte{0, 0, 5, 0, 3, 4, 1, 2, 2}, uint8(3), uint8(1), uint8(0), uint8(0))
	f.Add([]byte{0, 0, 5, 1, 5, 1, 1, 5, 1, 2, 5, 0, 3, 6, 9}, uint8(4), uint8(2), uint8(5), uint8(5))
	f.Add([]byte{0, 0, 9, 1, 4, 0, 2, 4, 0, 0, 4, 7}, uint8(0), uint8(1), uint8(4), uint8(9))
	// A term that begins at the horizon and that the winner's log never had.
	f.Add([]byte{0, 0, 8, 0, 0, 1, 1, 3, 6}, uint8(1), uint8(3), uint8(0), uint8(3))
	f.Fuzz(func(t *testing.T, steps []byte, winner, loser, foldWinner, foldLoser uint8) {
		logs := []explicit{{}}
		for term := Term(1); len(steps) >= 3 && len(logs) < 16; term, steps = term+1, steps[3:] {
			from := logs[int(steps[0])%len(logs)]
			logs = append(logs, from.begin(term, int(steps[1])%(len(from.terms)+1)).write(int(steps[2])%40))
		}
		p := logs[int(winner)%len(logs)]
		a := logs[int(loser)%len(logs)]
		if len(p.history) == 0 {
			return
		}
		a = a.cut(len(a.terms) - int(foldLoser)%(len(a.terms)+1)/2)

		// The winner goes on writing its last term for ever.
		last := p.history.LastTerm()
		want := 0
		for want < len(a.terms) && (want < len(p.terms) && a.terms[want] == p.terms[want] || want >= len(p.terms) && a.terms[want] == last) {
			want++
		}
		ph := p.history.Fold(LSN(min(int(foldWinner), want)))
		ah := a.history.Fold(LSN(min(int(foldLoser), want)))
		got, err := Divergence(ph, ah, LSN(len(a.terms)))
		if err != nil || got != LSN(want) {
			t.Fatalf("winner %v %v, folded %v\nloser  %v %v, folded %v\nDivergence says %v, %v; byte by byte it is %d",
				p.history, p.terms, ph, a.history, a.terms, ah, got, err, want)
		}
	})
}

// Histories from the network may be anything: no panic, and never a point above the log's end.
func FuzzDivergenceOfAnything(f *testing.F) {
	f.Add([]byte{1, 0, 2, 5}, []byte{1, 0, 1, 9}, uint8(20))
	f.Fuzz(func(t *testing.T, x, y []byte, flush uint8) {
		raw := func(b []byte) (h History) {
			for i := 0; i+1 < len(b); i += 2 {
				h = append(h, Position{Term(b[i]), LSN(b[i+1])})
			}
			return h
		}
		if got, err := Divergence(raw(x), raw(y), LSN(flush)); err == nil && got > LSN(flush) {
			t.Fatalf("a point %v above the end %v", got, flush)
		}
	})
}
