package proposer

import "github.com/seed7f3f3bb8/holdfast/wal"

// ends is a queue of ascending positions where something ends: requests that
// are not acknowledged, or appends that are not cut.
type ends struct {
	lsns []wal.LSN
	head int // the first one that counts
}

func (e *ends) len() int { return len(e.lsns) - e.head }

func (e *ends) add(lsn wal.LSN) {
	if len(e.lsns) == cap(e.lsns) && e.head > len(e.lsns)/2 {
		e.lsns = append(e.lsns[:0], e.lsns[e.head:]...)
		e.head = 0
	}
	e.lsns = append(e.lsns, lsn)
}

// drop removes those at or below lsn.
func (e *ends) drop(lsn wal.LSN) {
	for e.head < len(e.lsns) && e.lsns[e.head] <= lsn {
		e.head++
	}
	if e.head == len(e.lsns) {
		e.lsns, e.head = e.lsns[:0], 0
	}
}

// limit shortens a run of n bytes at begin so that it does not pass the first
// end above begin.
func (e *ends) limit(begin wal.LSN, n int) int {
	e.drop(begin)
	if e.len() == 0 {
		return n
	}
	return int(min(wal.LSN(n), e.lsns[e.head]-begin))
}
