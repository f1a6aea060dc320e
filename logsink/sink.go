package logsink

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// BufferBytes is the default bound of a Sink: 16 MiB, which holds a line
	// of 10 MB and is taken only when needed.
	BufferBytes = 16 << 20

	// keepBytes is the most memory that a drained sink holds on to.
	keepBytes = 256 << 10

	// lineOverheadBytes is what a buffered line costs besides its own bytes.
	lineOverheadBytes = 16

	// syncWait bounds Sync.
	syncWait = time.Second
)

// ErrClosed is returned by Write after Close.
var ErrClosed = errors.New("log sink is closed")

var errSlow = errors.New("the log was not written in time: its reader is slow or stuck")

// Sink writes lines to a writer in the background. Its methods may be called
// from any goroutine. Close it to flush it and to end its goroutine.
type Sink struct {
	to     io.Writer
	syslog *syslogWriter // to, if it is one: New frames lines for it
	limit  int           // bound on pending and writing together, with overhead

	mu      sync.Mutex
	changed sync.Cond // pending, writing, or closing has changed
	pending lines     // accepted and not yet taken by the writer
	spare   lines     // the writer's memory while it is not writing
	writing int       // cost of what the writer has taken
	failing bool      // the last write failed: a notice waits for the next line
	closing bool
	ended   chan struct{} // closed when the writer has returned

	dropped    drops // since the start
	unreported drops // of those, what the log does not say yet
	notice     func(lines, bytes uint64) []byte
}

// lines is a run of whole lines.
type lines struct {
	bytes []byte
	ends  []int // ends[i] is the end of line i in bytes
}

func (l *lines) add(p []byte) {
	l.bytes = append(l.bytes, p...)
	l.ends = append(l.ends, len(l.bytes))
}

func (l *lines) cost() int { return len(l.bytes) + lineOverheadBytes*len(l.ends) }

type drops struct{ lines, bytes uint64 }

func (d *drops) add(o drops) { d.lines += o.lines; d.bytes += o.bytes }

// NewSink starts a sink that writes to w and buffers at most limit bytes, the
// line being written included; 0 means BufferBytes. Each Write of the sink is one line, and
// what reaches w is whole lines, many at a time. If w has a method
// SetWriteDeadline, Close can interrupt a write that hangs; if it has a method
// Close, the sink closes it.
func NewSink(w io.Writer, limit int) *Sink {
	if limit <= 0 {
		limit = BufferBytes
	}
	s := &Sink{to: w, limit: limit, ended: make(chan struct{})}
	s.changed.L = &s.mu
	go s.write()
	return s
}

// Write takes one line. It never waits for the writer: a line that does not
// fit is dropped and counted, which is not an error.
func (s *Sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		s.dropped.add(drops{1, uint64(len(line))})
		return 0, ErrClosed
	}
	if s.pending.cost()+s.writing+len(line)+lineOverheadBytes > s.limit {
		d := drops{1, uint64(len(line))}
		s.dropped.add(d)
		s.unreported.add(d)
		return len(line), nil
	}
	if len(s.pending.ends) == 0 {
		defer s.changed.Broadcast()
	}
	s.pending.add(line)
	return len(line), nil
}

// Sync waits until everything accepted so far has been written, or a second.
// zap calls it before a process ends in panic.
func (s *Sink) Sync() error {
	late := false
	timer := time.AfterFunc(syncWait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.changed.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending.ends) > 0 || s.writing > 0 {
		if late {
			return errSlow
		}
		s.changed.Wait()
	}
	return nil
}

// Close writes what is buffered, until ctx ends, and ends the sink's
// goroutine. What could not be written by then is dropped, and the error says
// so. A write that cannot be interrupted, to a terminal for example, outlives
// Close. Closing again does nothing.
func (s *Sink) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil
	}
	s.closing = true
	s.changed.Broadcast()

	s.mu.Unlock()
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	s.mu.Lock()

	var err error
	select {
	case <-s.ended:
	default:
		err = errSlow
		s.drop(s.pending, 0)
		s.pending = lines{}
		d, ok := s.to.(interface{ SetWriteDeadline(time.Time) error })
		if !ok || d.SetWriteDeadline(time.Unix(1, 0)) != nil {
			return err
		}
		s.mu.Unlock()
		<-s.ended
		s.mu.Lock()
	}
	if c, ok := s.to.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// DroppedLines is how many lines have been lost since the start, for whatever reason.
func (s *Sink) DroppedLines() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped.lines
}

// DroppedBytes is the size of the lines that have been lost.
func (s *Sink) DroppedBytes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped.bytes
}
