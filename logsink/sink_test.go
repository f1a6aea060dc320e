package logsink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestMain(m *testing.M) {
	if os.Getenv("LOGSINK_TEST_CHILD") != "" {
		child()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// gate is a writer that hangs until it is opened.
type gate struct {
	entered chan struct{} // gets one for each write that has begun
	open    chan struct{}
	mu      sync.Mutex
	got     bytes.Buffer
}

func newGate() *gate {
	return &gate{entered: make(chan struct{}, 1000), open: make(chan struct{})}
}

func (g *gate) Write(p []byte) (int, error) {
	g.entered <- struct{}{}
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.Write(p)
}

func TestLinesArriveInOrder(t *testing.T) {
	var got bytes.Buffer
	s := NewSink(&got, 0)
	var want bytes.Buffer
	for i := range 10000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		if n, err := s.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := s.Close(within(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes arrived, expected %d", got.Len(), want.Len())
	}
	if s.DroppedLines() != 0 {
		t.Errorf("%d lines dropped", s.DroppedLines())
	}
	if _, err := s.Write([]byte("late\n")); err != ErrClosed || s.DroppedLines() != 1 {
		t.Errorf("after Close: %v, %d dropped", err, s.DroppedLines())
	}
	if err := s.Close(within(t, time.Second)); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

// While the writer hangs, callers go on, memory is bounded, and when it moves
// again the log accounts for every line.
func TestSlowWriter(t *testing.T) {
	g := newGate()
	const limit = 4096
	s := NewSink(g, limit)
	logger := zap.New(New(zap.InfoLevel, JSON, s))
	logger.Info("first")
	<-g.entered
	const n = 1000
	for i := range n {
		logger.Info("line", zap.Int("i", i))
		s.mu.Lock()
		if held := s.pending.cost() + s.writing; held > limit {
			t.Fatalf("the sink holds %d bytes, expected at most %d", held, limit)
		}
		s.mu.Unlock()
	}
	dropped := s.DroppedLines()
	if dropped == 0 || dropped >= n {
		t.Fatalf("%d of %d lines dropped", dropped, n)
	}
	close(g.open)
	if err := s.Close(within(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	text := g.got.String()
	if kept := strings.Count(text, `"msg":"line"`); uint64(kept)+dropped != n {
		t.Errorf("%d lines kept and %d dropped, expected %d in all", kept, dropped, n)
	}
	notice := fmt.Sprintf(`"dropped_lines":%d,"dropped_bytes":%d`, dropped, s.DroppedBytes())
	if strings.Count(text, "log lines dropped") != 1 || !strings.Contains(text, notice) {
		t.Errorf("the log does not say %s once:\n%s", notice, text)
	}
}

func TestCloseDoesNotWaitForAStuckWriter(t *testing.T) {
	g := newGate()
	s := NewSink(g, 0)
	_, _ = s.Write([]byte("one\n"))
	<-g.entered
	_, _ = s.Write([]byte("two\n"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ctx); !errors.Is(err, errSlow) {
		t.Errorf("got %v, expected that the log was not written", err)
	}
	if s.DroppedLines() != 1 {
		t.Errorf("%d lines dropped, expected the one that waited", s.DroppedLines())
	}
	close(g.open)
	<-s.ended
}

// A pipe that nobody reads: the write in it is interrupted and nothing is left behind.
func TestStuckPipe(t *testing.T) {
	r, w, err := Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	again, err := reopen(int(w.Fd())) // Fd makes w blocking; the sink's own descriptor is not
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	s := NewSink(again, 4<<20)
	line := []byte(strings.Repeat("x", 1023) + "\n")
	for range 8 << 10 { // 8 MiB
		_, _ = s.Write(line)
	}
	if s.DroppedLines() == 0 {
		t.Error("nothing was dropped")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ctx); !errors.Is(err, errSlow) {
		t.Errorf("got %v, expected that the log was not written", err)
	}
	select {
	case <-s.ended:
	default:
		t.Error("the writer is still there")
	}
	in, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if whole := uint64(len(in) / len(line)); whole+s.DroppedLines() != 8<<10 {
		t.Errorf("%d lines read and %d dropped, expected %d in all", whole, s.DroppedLines(), 8<<10)
	}
}

// broken fails every write until it is mended.
type broken struct {
	mu     sync.Mutex
	mended bool
	writes int
	got    bytes.Buffer
}

func (b *broken) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes++
	if !b.mended {
		return 0, errors.New("broken")
	}
	return b.got.Write(p)
}

func TestBrokenWriter(t *testing.T) {
	b := &broken{}
	s := NewSink(b, 0)
	logger := zap.New(New(zap.InfoLevel, JSON, s))
	for range 10 {
		logger.Info("lost")
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	b.mu.Lock()
	if b.writes > 10 {
		t.Errorf("%d writes for 10 lines: a broken writer is tried again and again", b.writes)
	}
	b.mended = true
	b.mu.Unlock()
	logger.Info("kept")
	if err := s.Close(within(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if text := b.got.String(); strings.Contains(text, "lost") || !strings.Contains(text, "kept") || !strings.Contains(text, `"dropped_lines":10,`) {
		t.Errorf("got %s", text)
	}
	if s.DroppedLines() != 10 {
		t.Errorf("%d lines dropped, expected 10", s.DroppedLines())
	}
}

// half writes a few bytes and fails: lines that got through whole do not count as lost.
type half struct{ n int }

func (h half) Write([]byte) (int, error) { return h.n, errors.New("broken") }

func TestPartialWrite(t *testing.T) {
	for n, want := range []uint64{3, 3, 2, 2, 1, 1, 0} {
		s := &Sink{to: half{n}}
		s.changed.L = &s.mu
		s.pending.add([]byte("a\n"))
		s.pending.add([]byte("b\n"))
		s.pending.add([]byte("c\n"))
		batch, told, _ := s.take()
		got, err := s.to.Write(batch.bytes)
		s.written(batch, told, got, err)
		if s.dropped.lines != want || s.dropped.bytes != 2*want {
			t.Errorf("%d bytes written: %+v dropped, expected %d lines", n, s.dropped, want)
		}
	}
}

func TestALineAboveTheLimit(t *testing.T) {
	var got bytes.Buffer
	s := NewSink(&got, 100)
	_, _ = s.Write(bytes.Repeat([]byte("x"), 101))
	_, _ = s.Write([]byte("short\n"))
	if err := s.Close(within(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if got.String() != "short\n" || s.DroppedLines() != 1 || s.DroppedBytes() != 101 {
		t.Errorf("got %q, %d dropped", got.String(), s.DroppedLines())
	}
}

func TestManyWriters(t *testing.T) {
	var got bytes.Buffer
	s := NewSink(&got, 0)
	logger := zap.New(New(zap.InfoLevel, JSON, s))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				logger.Info("x")
			}
		})
	}
	wg.Wait()
	if err := s.Close(within(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(got.Bytes(), []byte("\n")); n != 4000 {
		t.Errorf("%d lines, expected 4000", n)
	}
}

// child logs to a standard error that nobody reads any more.
func child() {
	s, err := Stderr(0)
	if err != nil {
		os.Exit(3)
	}
	logger := zap.New(New(zap.InfoLevel, JSON, s))
	for range 100 {
		logger.Info("to nobody")
		_ = s.Sync()
	}
	if s.DroppedLines() == 0 {
		os.Exit(4)
	}
}

// The death of a log collector must not be the death of an acceptor.
func TestReaderGoesAway(t *testing.T) {
	r, w, err := Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LOGSINK_TEST_CHILD=1")
	cmd.Stderr = w
	_ = r.Close()
	err = cmd.Run()
	_ = w.Close()
	if err != nil {
		t.Errorf("the child ended with %v", err)
	}
}

func TestFormats(t *testing.T) {
	at := time.Date(2026, 11, 5, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	for format, want := range map[Format]string{
		JSON:    `{"level":"info","ts":"2026-11-05T11:00:00.123456Z","logger":"acceptor","msg":"elected","term":7,"took":0.25}` + "\n",
		Console: "2026-11-05T11:00:00.123456Z\tinfo\tacceptor\telected\t{\"term\": 7, \"took\": 0.25}\n",
	} {
		var got bytes.Buffer
		s := NewSink(&got, 0)
		core := New(zapcore.InfoLevel, format, s)
		if core.Enabled(zapcore.DebugLevel) {
			t.Errorf("%s: debug is enabled", format)
		}
		if err := core.Write(zapcore.Entry{Level: zapcore.InfoLevel, Time: at, LoggerName: "acceptor", Message: "elected"},
			[]zapcore.Field{zap.Int("term", 7), zap.Duration("took", 250*time.Millisecond)}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(within(t, 10*time.Second)); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("%s: got %q, expected %q", format, got.String(), want)
		}
		if f, err := ParseFormat(string(format)); err != nil || f != format {
			t.Errorf("ParseFormat(%s): %v, %v", format, f, err)
		}
	}
	if _, err := ParseFormat("xml"); err == nil {
		t.Error("xml was accepted")
	}
}
