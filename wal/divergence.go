package wal

import "fmt"

// DivergenceError reports two histories that no correct run can produce, or a
// log that ends before the point from which it could be continued.
type DivergenceError struct{ Reason string }

func (e *DivergenceError) Error() string { return "term histories do not fit: " + e.Reason }

// Divergence returns the position up to which a log with the visible history
// acceptor and the end flush holds the same bytes as the log that the history
// proposer describes; everything from there on must be replaced.
//
// Let t be the highest term in both. Without one the logs part at the
// proposer's first entry. If t is the proposer's last term, which has no end
// yet, the point is where t ends in the acceptor's log: flush, unless a later
// term went on there. Otherwise it is the smaller of where t ends in either log.
//
// The source is the truncation rule of Neon's safekeeper protocol. A result
// above flush, or one term at two positions, is a *DivergenceError.
func Divergence(proposer, acceptor History, flush LSN) (LSN, error) {
	if len(proposer) == 0 {
		return 0, &DivergenceError{"the proposer's history is empty"}
	}
	p, a := len(proposer)-1, len(acceptor)-1
	for p >= 0 && a >= 0 && proposer[p].Term != acceptor[a].Term {
		if proposer[p].Term > acceptor[a].Term {
			p--
		} else {
			a--
		}
	}
	point := proposer[0].LSN
	if p >= 0 && a >= 0 {
		if proposer[p].LSN != acceptor[a].LSN {
			return 0, &DivergenceError{fmt.Sprintf("term %d begins at %v for the proposer and at %v for the acceptor",
				proposer[p].Term, proposer[p].LSN, acceptor[a].LSN)}
		}
		point = acceptor.endOf(a, flush)
		if p+1 < len(proposer) {
			point = min(point, proposer[p+1].LSN)
		}
	}
	if point > flush {
		return 0, &DivergenceError{fmt.Sprintf("they part at %v, above the acceptor's end %v", point, flush)}
	}
	return point, nil
}
