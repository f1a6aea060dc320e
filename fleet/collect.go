package fleet

import (
	"os"
	"sync"

	"github.com/seed7f3f3bb8/holdfast/logsink"
)

// collector carries a child's standard error through a wide pipe into a file:
// a burst of log lines must not make the child's writer wait.
type collector struct {
	child  *os.File // the child's end
	parent *os.File
	file   *os.File
	tail   *tail
	done   chan struct{}
}

func collect(path string, t *tail) (*collector, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	r, w, err := logsink.Pipe()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &collector{child: w, parent: r, file: f, tail: t, done: make(chan struct{})}, nil
}

// started begins to collect; the child has its end.
func (c *collector) started() {
	_ = c.child.Close()
	go func() {
		defer close(c.done)
		// A file that cannot be written must not stop the child: the tail goes on.
		_ = logsink.Collect(c.parent, func(line []byte, more bool) {
			_, _ = c.file.Write(line)
			c.tail.add(line)
			if !more {
				_, _ = c.file.Write(newline)
				c.tail.add(newline)
			}
		})
		_ = c.parent.Close()
		_ = c.file.Close()
	}()
}

var newline = []byte{'\n'}

// wait returns when all that the child wrote is in the file.
func (c *collector) wait() { <-c.done }

func (c *collector) abandon() {
	_ = c.child.Close()
	_ = c.parent.Close()
	_ = c.file.Close()
}

// tail keeps the end of what is added to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailBytes = 4 << 10

func (t *tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if len(t.kept) > tailBytes {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailBytes:]...)
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
