package pgwal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Branch is a TLI and the position at which it began: below, it holds its parent's bytes.
type Branch struct {
	TLI   TLI
	Begin wal.LSN
}

// Ancestry is a TLI with its ancestors, oldest first. TLIs rise strictly, begins
// never fall (a TLI that was promoted again before it wrote is empty), and the
// first begins at 0. It is what a history file says.
type Ancestry []Branch

// Validate reports the first entry that breaks the rules of Ancestry.
func (a Ancestry) Validate() error {
	if len(a) == 0 {
		return fmt.Errorf("the list of timelines is empty")
	}
	for i, b := range a {
		switch {
		case b.TLI == 0:
			return fmt.Errorf("timeline 0 in the list of timelines; they begin at 1")
		case i == 0 && b.Begin != 0:
			return fmt.Errorf("the oldest timeline %d begins at %v, expected 0/0", b.TLI, b.Begin)
		case i > 0 && (b.TLI <= a[i-1].TLI || b.Begin < a[i-1].Begin):
			return fmt.Errorf("timeline %d at %v does not follow timeline %d at %v", b.TLI, b.Begin, a[i-1].TLI, a[i-1].Begin)
		}
	}
	return nil
}

// Last is the newest TLI, 0 if there is none.
func (a Ancestry) Last() TLI {
	if len(a) == 0 {
		return 0
	}
	return a[len(a)-1].TLI
}

// At is the index of the TLI that a log ending at end is on: the newest that
// began at or below end. It is -1 for an empty list.
func (a Ancestry) At(end wal.LSN) int {
	i := len(a) - 1
	for i > 0 && a[i].Begin > end {
		i--
	}
	return i
}

// Find returns the index of tli, -1 if it is no ancestor.
func (a Ancestry) Find(tli TLI) int {
	for i, b := range a {
		if b.TLI == tli {
			return i
		}
	}
	return -1
}

// End is where entry i's own writing ended; false for the newest, which goes on.
func (a Ancestry) End(i int) (wal.LSN, bool) {
	if i+1 >= len(a) {
		return 0, false
	}
	return a[i+1].Begin, true
}

// ParseHistory reads tli's history file. A line is the parent's number, the
// position at which the line of descent left it, and a reason, separated by
// white space; empty lines and lines that begin with # say nothing. TLI 1 has
// no history file: nil content stands for it.
func ParseHistory(tli TLI, content []byte) (Ancestry, error) {
	var a Ancestry
	begin := wal.LSN(0)
	for n, line := range strings.Split(string(content), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		parent, err := strconv.ParseUint(fields[0], 10, 32)
		if err != nil || len(fields) < 2 {
			return nil, fmt.Errorf("%s line %d: expected a timeline's number and a position", HistoryFileName(tli), n+1)
		}
		end, err := wal.ParseLSN(fields[1])
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", HistoryFileName(tli), n+1, err)
		}
		a = append(a, Branch{TLI(parent), begin})
		begin = end
	}
	a = append(a, Branch{tli, begin})
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", HistoryFileName(tli), err)
	}
	return a, nil
}

// FormatHistory writes a history file for the newest TLI of a, without reasons.
func FormatHistory(a Ancestry) []byte {
	var b strings.Builder
	for i := range a {
		if end, ok := a.End(i); ok {
			fmt.Fprintf(&b, "%d\t%v\tsee the newest history file\n", a[i].TLI, end)
		}
	}
	return []byte(b.String())
}

// ancestorHistory cuts, from the history file of a descendant, the history file
// of its ancestor tli: PostgreSQL makes a new history file from the parent's,
// unchanged, and one line more. It is nil for TLI 1 and for a stranger.
func ancestorHistory(content []byte, tli TLI) []byte {
	kept := 0
	for pos := 0; pos < len(content); {
		end := pos + 1
		for end < len(content) && content[end-1] != '\n' {
			end++
		}
		fields := strings.Fields(string(content[pos:end]))
		if len(fields) > 1 && fields[0][0] != '#' {
			if fields[0] == strconv.FormatUint(uint64(tli), 10) {
				return content[:kept:kept]
			}
			kept = end
		}
		pos = end
	}
	return nil
}
