package fleet

import (
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// collector carries a child's standard error through a wide pipe into a file.
type collector struct {
	child  *os.File // the child's end
	parent *os.File
	file   *os.File
	tail   *tail
	done   chan struct{}
}

// pipeBytes is what is asked for: the kernel's default of 64 KiB fills up in
// one burst of log lines, and then the child's writer waits.
const pipeBytes = 1 << 20

func collect(path string, t *tail) (*collector, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	for size := pipeBytes; size > 64<<10; size /= 2 {
		if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, size); err == nil {
			break
		}
	}
	return &collector{child: w, parent: r, file: f, tail: t, done: make(chan struct{})}, nil
}

// started begins to collect; the child has its end.
func (c *collector) started() {
	_ = c.child.Close()
	go func() {
		defer close(c.done)
		_, _ = io.Copy(io.MultiWriter(c.file, c.tail), c.parent)
		_ = c.parent.Close()
		_ = c.file.Close()
	}()
}

// wait returns when all that the child wrote is in the file.
func (c *collector) wait() { <-c.done }

func (c *collector) abandon() {
	_ = c.child.Close()
	_ = c.parent.Close()
	_ = c.file.Close()
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailBytes = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if len(t.kept) > tailBytes {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailBytes:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
