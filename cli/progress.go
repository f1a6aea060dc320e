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
)

// Progress shows one line of talk that changes while something takes long. On
// a terminal the line is redrawn in place; elsewhere a new one is printed every ten seconds.
type Progress struct {
	out      *Streams
	line     func() string
	live     bool
	stop     chan struct{}
	done     chan struct{}
	stopOnce sync.Once
}

// NewProgress begins to show what line returns, two seconds from now or, with
// atOnce, from the start. line is called from another goroutine. Stop ends it.
func (s *Streams) NewProgress(atOnce bool, line func() string) *Progress {
	p := &Progress{out: s, line: line, live: IsTerminal(s.Err), stop: make(chan struct{}), done: make(chan struct{})}
	wait := progressQuiet
	if atOnce {
		wait = 0
	}
	go p.run(wait)
	return p
}

// Stop removes the live line and returns when nothing more will be written. It
// may be called more than once.
func (p *Progress) Stop() {
	p.stopOnce.Do(func() { close(p.stop) })
	<-p.done
}

func (p *Progress) run(wait time.Duration) {
	defer close(p.done)
	every := progressPlain
	if p.live {
		every = progressTerminal
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	width := 0
	for {
		select {
		case <-p.stop:
			if p.live && width > 0 {
				fmt.Fprintf(p.out.Err, "\r%s\r", strings.Repeat(" ", width))
			}
			return
		case <-timer.C:
		}
		text := p.line()
		if p.live {
			fmt.Fprintf(p.out.Err, "\r%-*s", width, text)
			width = len([]rune(text))
		} else {
			fmt.Fprintln(p.out.Err, text)
		}
		timer.Reset(every)
	}
}
