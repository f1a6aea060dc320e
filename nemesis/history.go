package nemesis

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// A client's history is a text file to which each line is written with one
// write call before the client goes on, so that kill -9 loses none:
//
//	w SEED                    what this client's payloads are made from
//	e TIME                    its proposer has won
//	i OP TIME                 append OP is called
//	p OP BEGIN END            it has its place
//	k OP TIME                 it is acknowledged
//	u OP                      its outcome is unknown, or it has none
//	r CALLED TIME BEGIN END CRC   committed bytes were read from some acceptor
//
// TIME is the monotonic clock in nanoseconds, which all processes of this machine share.

// now is that clock. time.Since cannot be used: it begins anew in each process.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // there is no Linux without it
	}
	return t.Nano()
}

// recorder writes a history.
type recorder struct{ f *os.File }

func newRecorder(name string) (*recorder, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	return &recorder{f}, err
}

// add writes a line. Without a record nothing may be done, so an error is the end.
func (r *recorder) add(format string, args ...any) {
	if _, err := fmt.Fprintf(r.f, format+"\n", args...); err != nil {
		fmt.Fprintln(os.Stderr, "history:", err)
		os.Exit(1)
	}
}

// unknownTime is the return of a call that never returned.
const unknownTime = math.MaxInt64

// op is one append as its client saw it.
type op struct {
	client     int // index into histories
	number     uint64
	called     int64
	returned   int64 // unknownTime if it was not acknowledged
	placed     bool
	begin, end wal.LSN
}

func (o *op) acked() bool { return o.returned != unknownTime }

// read is one read of committed bytes.
type read struct {
	called, returned int64
	begin, end       wal.LSN
	crc              uint32
}

// history is what one client process wrote down.
type history struct {
	seed uint64
	wins []int64
	ops  []op
	read []read
}

// parseHistory reads a client's file; a last line that is torn did not happen.
func parseHistory(r io.Reader, client int) (*history, error) {
	h := &history{}
	index := map[uint64]int{}
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return h, nil
		}
		if err != nil {
			return nil, err
		}
		if err := h.line(strings.TrimSuffix(line, "\n"), client, index); err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", n, line, err)
		}
	}
}

func (h *history) line(line string, client int, index map[uint64]int) error {
	kind, rest, _ := strings.Cut(line, " ")
	var number uint64
	var t int64
	var begin, end string
	at := func() (*op, error) {
		i, ok := index[number]
		if !ok {
			return nil, fmt.Errorf("append %d was never called", number)
		}
		return &h.ops[i], nil
	}
	switch kind {
	case "w":
		_, err := fmt.Sscanf(rest, "%x", &h.seed)
		return err
	case "e":
		_, err := fmt.Sscan(rest, &t)
		h.wins = append(h.wins, t)
		return err
	case "i":
		if _, err := fmt.Sscan(rest, &number, &t); err != nil {
			return err
		}
		index[number] = len(h.ops)
		h.ops = append(h.ops, op{client: client, number: number, called: t, returned: unknownTime})
		return nil
	case "p":
		if _, err := fmt.Sscan(rest, &number, &begin, &end); err != nil {
			return err
		}
		o, err := at()
		if err != nil {
			return err
		}
		o.placed = true
		return parseRange(begin, end, &o.begin, &o.end)
	case "k":
		if _, err := fmt.Sscan(rest, &number, &t); err != nil {
			return err
		}
		o, err := at()
		if err == nil {
			o.returned = t
		}
		return err
	case "u":
		return nil
	case "r":
		var x read
		if _, err := fmt.Sscanf(rest, "%d %d %s %s %x", &x.called, &x.returned, &begin, &end, &x.crc); err != nil {
			return err
		}
		err := parseRange(begin, end, &x.begin, &x.end)
		h.read = append(h.read, x)
		return err
	}
	return fmt.Errorf("a record of no known kind")
}

func parseRange(b, e string, begin, end *wal.LSN) (err error) {
	if *begin, err = wal.ParseLSN(b); err != nil {
		return err
	}
	*end, err = wal.ParseLSN(e)
	return err
}
