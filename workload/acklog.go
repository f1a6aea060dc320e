package workload

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// The log of acknowledged appends is a text file, one line a record:
//
//	holdfast-acks 1                               first line: format and version
//	run TIMELINE SEED                             a load began; SEED in hexadecimal
//	a COUNTER BEGIN END CRC.                      payload COUNTER of the run stands at [BEGIN, END)
//	r BEGIN END CRC.                              so do bytes that were given from outside
//
// CRC is the CRC-32C of the bytes as the client had them, in hexadecimal; the
// dot shows that the record is whole. A record is written only after the append
// was acknowledged. A process that is killed loses at most the records of its
// last moments: evidence is lost then, but no line ever claims what was not
// acknowledged. The torn last line of a run is ignored.
const ackMagic = "holdfast-acks 1"

// ackFlushEvery is how long a record may stay in the process.
const ackFlushEvery = 50 * time.Millisecond

// AckLog writes acknowledged appends to a file. It is safe for concurrent use.
type AckLog struct {
	mu      sync.Mutex
	file    *os.File
	w       *bufio.Writer
	line    []byte
	flushed time.Time
}

// OpenAckLog opens a file to add a run to it, and makes it if there is none.
func OpenAckLog(path string, timeline wal.TimelineID, seed uint64) (*AckLog, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("ack log: %w", err)
	}
	if err := continues(f, timeline); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("ack log %s: %w", path, err)
	}
	l := &AckLog{file: f, w: bufio.NewWriterSize(f, 64<<10), flushed: time.Now()}
	end, err := f.Seek(0, io.SeekEnd)
	if err == nil && end > 0 {
		// A line that a killed process left unfinished must not swallow ours.
		last := make([]byte, 1)
		if _, err = f.ReadAt(last, end-1); err == nil && last[0] != '\n' {
			_, err = l.w.WriteString("\n")
		}
	} else if err == nil {
		_, err = fmt.Fprintln(l.w, ackMagic)
	}
	if err == nil {
		_, err = fmt.Fprintf(l.w, "run %v %016x\n", timeline, seed)
	}
	if err == nil {
		err = l.w.Flush()
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("ack log: %w", err)
	}
	return l, nil
}

// continues reports why a run of timeline may not be added to f: it is some
// other file, or about another timeline, whose positions are not comparable. What is
// left of first lines that were never finished is removed.
func continues(f *os.File, timeline wal.TimelineID) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err // a pipe or a device has no past
	}
	head := make([]byte, 2*ackLineMax)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	first, rest, whole := strings.Cut(string(head[:n]), "\n")
	switch {
	case !whole && strings.HasPrefix(ackMagic, first):
		return f.Truncate(0)
	case first != ackMagic:
		return fmt.Errorf("it exists and is not a log of acknowledged appends; nothing was changed")
	}
	run, _, whole := strings.Cut(rest, "\n")
	if !whole {
		return f.Truncate(0) // nothing was recorded
	}
	if fields := strings.Split(run, " "); len(fields) != 3 || fields[1] != timeline.String() {
		return fmt.Errorf("it is about another timeline (%.80q), not about %v: each needs a file of its own", run, timeline)
	}
	return nil
}

// Generated records that payload counter of this run is acknowledged.
func (l *AckLog) Generated(counter uint64, begin, end wal.LSN, crc uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := append(l.line[:0], 'a', ' ')
	b = strconv.AppendUint(b, counter, 10)
	return l.add(b, begin, end, crc)
}

// Raw records that bytes from outside are acknowledged.
func (l *AckLog) Raw(begin, end wal.LSN, crc uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(append(l.line[:0], 'r'), begin, end, crc)
}

func (l *AckLog) add(b []byte, begin, end wal.LSN, crc uint32) error {
	b = append(b, ' ')
	b = append(b, begin.String()...)
	b = append(b, ' ')
	b = append(b, end.String()...)
	b = append(b, ' ')
	b = strconv.AppendUint(b, uint64(crc), 16)
	b = append(b, ".\n"...)
	l.line = b
	if _, err := l.w.Write(b); err != nil {
		return fmt.Errorf("ack log: %w", err)
	}
	if now := time.Now(); now.Sub(l.flushed) >= ackFlushEvery {
		l.flushed = now
		if err := l.w.Flush(); err != nil {
			return fmt.Errorf("ack log: %w", err)
		}
	}
	return nil
}

// Close writes out what is left. It must be called once.
func (l *AckLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.w.Flush()
	if closeErr := l.file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("ack log: %w", err)
	}
	return nil
}
