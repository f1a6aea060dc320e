package wal

import (
	"fmt"
	"slices"
)

// Term numbers an election. Term 0 means that nobody was ever elected.
type Term uint64

// Position is where the writing of a term began.
type Position struct {
	Term Term
	LSN  LSN
}

// History lists, in order, where each term's writing began: entry i wrote
// [h[i].LSN, h[i+1].LSN) and the last entry everything beyond. Terms and LSNs
// rise strictly: a term that wrote nothing leaves no entry. An empty
// history belongs to a log in which nobody has ever written. Entries below the
// horizon may have been dropped (see Fold), so the first entry need not be the
// log's first term.
type History []Position

// HistoryMax bounds a history's entries, so that a peer or a disk cannot make
// one grow without end. A history that reaches it waits for the horizon to move.
const HistoryMax = 4096

// Validate reports the first entry that breaks the rules of History.
func (h History) Validate() error {
	if len(h) > HistoryMax {
		return fmt.Errorf("term history has %d entries, at most %d are allowed", len(h), HistoryMax)
	}
	for i, p := range h {
		if p.Term == 0 {
			return fmt.Errorf("term history entry %d has term 0; terms begin at 1", i)
		}
		if i > 0 && (p.Term <= h[i-1].Term || p.LSN <= h[i-1].LSN) {
			return fmt.Errorf("term history entry %d (term %d at %v) does not rise above entry %d (term %d at %v)",
				i, p.Term, p.LSN, i-1, h[i-1].Term, h[i-1].LSN)
		}
	}
	return nil
}

// LastTerm is the term of the last entry, 0 for an empty history.
func (h History) LastTerm() Term {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].Term
}

// Visible returns the part of a stored history that a log ending at flush can
// vouch for: the entries that begin at or below flush. An entry that begins
// exactly at flush counts: the log agrees with that term on everything below.
// The result shares h's memory and must not be written to.
func (h History) Visible(flush LSN) History {
	n := len(h)
	for n > 0 && h[n-1].LSN > flush {
		n--
	}
	return h[:n:n]
}

// Extend returns a new history in which term begins to write at start, above
// everything in h. Entries at or beyond start go: those terms wrote nothing
// that the new term keeps.
func (h History) Extend(term Term, start LSN) History {
	n := len(h)
	for n > 0 && h[n-1].LSN >= start {
		n--
	}
	out := make(History, 0, n+1)
	return append(append(out, h[:n]...), Position{term, start})
}

// Fold returns h without the entries that say nothing of horizon or beyond,
// except the one that wrote the last byte below it: that byte is committed, so
// every log holds it, and two folded histories always share a term. A term
// that only begins at horizon may be one that other logs never had. The result
// shares h's memory.
func (h History) Fold(horizon LSN) History {
	i := 0
	for i+1 < len(h) && h[i+1].LSN < horizon {
		i++
	}
	return h[i:]
}

// TermAt is the term that wrote the byte at lsn, 0 if lsn is below the first entry.
func (h History) TermAt(lsn LSN) Term {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].LSN <= lsn {
			return h[i].Term
		}
	}
	return 0
}

// Contains reports whether term has an entry.
func (h History) Contains(term Term) bool {
	return slices.ContainsFunc(h, func(p Position) bool { return p.Term == term })
}

// endOf is where entry i's writing ends in a log that ends at end.
func (h History) endOf(i int, end LSN) LSN {
	if i+1 < len(h) {
		return h[i+1].LSN
	}
	return end
}

// Equal reports whether both histories hold the same entries.
func (h History) Equal(o History) bool { return slices.Equal(h, o) }
