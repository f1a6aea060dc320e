package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// How often progress is shown: a terminal's line is redrawn, elsewhere a new line is printed.
const (
	progressQuiet    = 2 * time.Second // nothing shorter shows progress
	progressTerminal = 200 * time.Millisecond
	progressPlain    = 10 * time.Second
	progressEager    = 2 * time.Second // off a terminal, for a command whose progress is the point
)

// Progress shows one line of talk that changes while something takes long. On
// a terminal the line is redrawn in place; elsewhere a new one is printed now and then.
type Progress struct {
	out      *Streams
	line     func() string
	live     bool
	stop     chan struct{}
	done     chan struct{}
	stopOnce sync.Once

	mu    sync.Mutex // for writing to out.Err
	width int        // of the line that stands there now, in characters
}

// NewProgress begins to show what line returns two seconds from now, for a
// command that may be over by then. line is called from another goroutine. Stop ends it.
func (s *Streams) NewProgress(line func() string) *Progress {
	return s.progress(line, progressQuiet, progressPlain)
}

// NewEagerProgress is NewProgress for a command whose progress is the point:
// it begins at once.
func (s *Streams) NewEagerProgress(line func() string) *Progress {
	return s.progress(line, 0, progressEager)
}

func (s *Streams) progress(line func() string, wait, every time.Duration) *Progress {
	p := &Progress{out: s, line: line, live: IsTerminal(s.Err), stop: make(chan struct{}), done: make(chan struct{})}
	if p.live {
		every = progressTerminal
	}
	go p.run(wait, every)
	return p
}

// Stop removes the live line and returns when nothing more will be written. It
// may be called more than once.
func (p *Progress) Stop() {
	p.stopOnce.Do(func() { close(p.stop) })
	<-p.done
}

// Say prints a line that stays.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.out.Err, format+"\n", args...)
}

func (p *Progress) run(wait, every time.Duration) {
	defer close(p.done)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-p.stop:
			p.mu.Lock()
			p.clear()
			p.mu.Unlock()
			return
		case <-timer.C:
		}
		p.show(p.line())
		timer.Reset(every)
	}
}

func (p *Progress) show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.live {
		fmt.Fprintln(p.out.Err, text)
		return
	}
	fmt.Fprintf(p.out.Err, "\r%-*s", p.width, text)
	p.width = len([]rune(text))
}

// clear removes the live line.
func (p *Progress) clear() {
	if p.width > 0 {
		fmt.Fprintf(p.out.Err, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}
