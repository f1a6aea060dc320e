package workload

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Ack is one acknowledged append.
type Ack struct {
	Begin, End wal.LSN
	CRC        uint32
	Run        int32  // index into Acks.Runs
	Raw        bool   // bytes from outside; only their checksum is known
	Counter    uint64 // which payload of the run
}

// Run is one load that wrote to the file.
type Run struct {
	Timeline wal.TimelineID
	Seed     uint64
}

// Acks is all that a log of acknowledged appends claims, sorted by position.
type Acks struct {
	Runs []Run
	List []Ack
}

// ackLineMax bounds a line; the longest that is written has below 200 bytes.
const ackLineMax = 1 << 10

// ReadAcksFile reads a log of acknowledged appends.
func ReadAcksFile(path string) (*Acks, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ack log: %w", err)
	}
	defer f.Close()
	a, err := ReadAcks(f)
	if err != nil {
		return nil, fmt.Errorf("ack log %s: %w", path, err)
	}
	return a, nil
}

// ReadAcks parses a log of acknowledged appends. Two acknowledged appends that
// overlap are an error of their own kind, *OverlapError: no log can hold both.
func ReadAcks(r io.Reader) (*Acks, error) {
	a := &Acks{}
	in := bufio.NewReaderSize(r, 1<<20)
	torn := 0 // number of a line that cannot be read; only a new run may follow it
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			break // a last line without its end is torn
		}
		if err != nil {
			return nil, err
		}
		line = line[:len(line)-1]
		begins := strings.HasPrefix(line, "run ")
		switch {
		case len(line) > ackLineMax:
			return nil, fmt.Errorf("line %d has %d bytes; this is not a log of acknowledged appends", n, len(line))
		case n == 1 && line != ackMagic:
			return nil, fmt.Errorf("line 1 is %.40q, expected %q", line, ackMagic)
		case n == 1:
			continue
		case torn != 0 && !begins:
			return nil, fmt.Errorf("line %d cannot be read, and no new run begins behind it", torn)
		}
		torn = 0
		if err := a.parse(line); err != nil {
			if begins || len(a.Runs) == 0 {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			torn = n
		}
	}
	for _, run := range a.Runs {
		if run.Timeline != a.Runs[0].Timeline {
			return nil, fmt.Errorf("it is about %v and about %v; an audit is about one timeline", a.Runs[0].Timeline, run.Timeline)
		}
	}
	slices.SortFunc(a.List, func(x, y Ack) int { return cmp.Compare(x.Begin, y.Begin) })
	for i := 1; i < len(a.List); i++ {
		if a.List[i].Begin < a.List[i-1].End {
			return nil, &OverlapError{a.List[i-1], a.List[i]}
		}
	}
	return a, nil
}

// OverlapError: two acknowledged appends claim the same position.
type OverlapError struct{ A, B Ack }

func (e *OverlapError) Error() string {
	return fmt.Sprintf("appends at [%v, %v) and [%v, %v) were both acknowledged and overlap", e.A.Begin, e.A.End, e.B.Begin, e.B.End)
}

func (a *Acks) parse(line string) error {
	f := strings.Split(line, " ")
	if f[0] == "run" && len(f) == 3 {
		id, err := wal.ParseTimelineID(f[1])
		if err != nil {
			return err
		}
		seed, err := strconv.ParseUint(f[2], 16, 64)
		if err != nil {
			return err
		}
		a.Runs = append(a.Runs, Run{id, seed})
		return nil
	}
	k := Ack{Run: int32(len(a.Runs) - 1)}
	last, whole := strings.CutSuffix(f[len(f)-1], ".")
	f[len(f)-1] = last
	var err error
	switch {
	case len(a.Runs) == 0:
		return fmt.Errorf("a record before the first run")
	case !whole:
		return fmt.Errorf("%.40q is torn", line)
	case f[0] == "a" && len(f) == 5:
		if k.Counter, err = strconv.ParseUint(f[1], 10, 64); err != nil {
			return err
		}
		f = f[1:]
	case f[0] == "r" && len(f) == 4:
		k.Raw = true
	default:
		return fmt.Errorf("%.40q is no record", line)
	}
	if k.Begin, err = wal.ParseLSN(f[1]); err != nil {
		return err
	}
	if k.End, err = wal.ParseLSN(f[2]); err != nil {
		return err
	}
	crc, err := strconv.ParseUint(f[3], 16, 32)
	if err != nil {
		return err
	}
	if k.CRC = uint32(crc); k.End <= k.Begin {
		return fmt.Errorf("[%v, %v) is empty", k.Begin, k.End)
	}
	a.List = append(a.List, k)
	return nil
}
