// Package bridgetest has an in-memory log with which the bridge's rooms are
// tested where real acceptors would only be in the way: its quorum can be
// frozen, and what an election finds can be set.
package bridgetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Log is one timeline. It implements ingest.Elector. The zero value is not usable.
type Log struct {
	mu         sync.Mutex
	changed    chan struct{} // closed and replaced whenever anything changes
	first      wal.LSN
	data       []byte
	history    wal.History
	term       wal.Term
	systemID   uint64
	properties []byte
	commit     wal.LSN
	frozen     bool
	down       bool
	mayBe      *wal.LSN
	writer     *writer
	elections  int
	decisions  []ingest.Decision
}

// New makes an empty log that begins at first.
func New(first wal.LSN) *Log {
	return &Log{first: first, commit: first, changed: make(chan struct{})}
}

func (l *Log) end() wal.LSN { return l.first + wal.LSN(len(l.data)) }

func (l *Log) bump() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Log) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	l.bump()
}

// Freeze stops the commit position; Thaw lets it catch up.
func (l *Log) Freeze() { l.do(func() { l.frozen = true }) }

// Thaw is the opposite of Freeze.
func (l *Log) Thaw() { l.do(func() { l.frozen = false; l.advance() }) }

// SetDown makes campaigns wait, as without a quorum.
func (l *Log) SetDown(down bool) { l.do(func() { l.down = down }) }

// SetMayBeCommitted sets what the next election says could be committed.
func (l *Log) SetMayBeCommitted(lsn wal.LSN) { l.do(func() { l.mayBe = &lsn }) }

// SetCommit lowers or raises the commit position, as if less had been acknowledged.
func (l *Log) SetCommit(lsn wal.LSN) { l.do(func() { l.commit = lsn }) }

// Flip changes a stored byte.
func (l *Log) Flip(lsn wal.LSN) { l.do(func() { l.data[lsn-l.first] ^= 0xff }) }

// SetProperties replaces the stored properties in a term of its own.
func (l *Log) SetProperties(p []byte) {
	l.do(func() {
		l.term++
		l.history = l.history.Extend(l.term, l.end())
		l.properties = p
	})
}

// State is a snapshot of the log.
type State struct {
	First, End, Commit wal.LSN
	Term               wal.Term
	History            wal.History
	SystemID           uint64
	Properties         []byte
	Elections          int
	Decisions          []ingest.Decision
}

// State returns a snapshot.
func (l *Log) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{l.first, l.end(), l.commit, l.term, l.history, l.systemID, l.properties, l.elections, slices.Clone(l.decisions)}
}

// Bytes returns a copy of [begin, end).
func (l *Log) Bytes(begin, end wal.LSN) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.data[begin-l.first : end-l.first])
}

// WaitFor returns when cond holds for a snapshot.
func (l *Log) WaitFor(ctx context.Context, cond func(State) bool) error {
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if cond(l.State()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *Log) advance() {
	if !l.frozen && l.writer != nil {
		l.commit = max(l.commit, l.end())
	}
}

// Open implements ingest.Elector.
func (l *Log) Open(ctx context.Context, systemID uint64, decide func(context.Context, ingest.Election) (ingest.Decision, error)) (ingest.Writer, error) {
	l.mu.Lock()
	for l.down {
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		l.mu.Lock()
	}
	l.term++
	l.elections++
	if l.writer != nil {
		l.writer.end(&ingest.FencedError{Term: l.term, Err: errors.New("a later campaign won")})
	}
	e := ingest.Election{Term: l.term, Donor: 1, History: slices.Clone(l.history), Start: l.end(), SystemID: l.systemID, Properties: l.properties,
		Commit: l.commit, MayBeCommitted: l.mayBeCommitted()}
	l.mu.Unlock()
	asked, answered := context.WithCancel(ctx)
	d, err := decide(asked, e)
	answered() // as the proposer does: what decide has begun must not depend on it
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case d.Start > e.Start || d.Start < l.mayBeCommitted():
		return nil, fmt.Errorf("decided to start at %v, outside [%v, %v]", d.Start, l.mayBeCommitted(), e.Start)
	case l.term != e.Term:
		return nil, fmt.Errorf("term %d was lost", e.Term)
	}
	l.data = l.data[:d.Start-l.first]
	l.history = l.history.Extend(e.Term, d.Start)
	l.systemID, l.properties = d.SystemID, d.Properties
	l.decisions = append(l.decisions, d)
	l.mayBe = nil
	l.writer = &writer{log: l, done: make(chan struct{})}
	l.advance()
	l.bump()
	return l.writer, nil
}

func (l *Log) mayBeCommitted() wal.LSN {
	if l.mayBe != nil {
		return *l.mayBe
	}
	return l.end()
}

// ReadDonor implements ingest.Elector.
func (l *Log) ReadDonor(_ context.Context, _ ingest.Election, begin, end wal.LSN, each func([]byte) error) error {
	l.mu.Lock()
	first := l.first
	l.mu.Unlock()
	if begin < first {
		return &ingest.TrimmedError{Oldest: first}
	}
	data := l.Bytes(begin, end)
	for piece := range slices.Chunk(data, 10_000) {
		if err := each(piece); err != nil {
			return err
		}
	}
	return nil
}

type writer struct {
	log  *Log
	done chan struct{}
	err  error
}

func (w *writer) end(err error) {
	if w.err == nil {
		w.err = err
		close(w.done)
	}
	if w.log.writer == w {
		w.log.writer = nil
	}
	w.log.bump()
}

func (w *writer) Append(ctx context.Context, data []byte) (begin, end wal.LSN, err error) {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.frozen && len(l.data) > int(l.commit-l.first)+64<<20 && w.err == nil { // a full window
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			l.mu.Lock()
			return 0, 0, ctx.Err()
		}
		l.mu.Lock()
	}
	if w.err != nil {
		return 0, 0, w.err
	}
	begin = l.end()
	l.data = append(l.data, data...)
	l.advance()
	l.bump()
	return begin, l.end(), nil
}

func (w *writer) Wait(ctx context.Context, lsn wal.LSN) error {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if w.err != nil {
			return w.err
		}
		if l.commit >= lsn {
			return nil
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
			l.mu.Lock()
		case <-ctx.Done():
			l.mu.Lock()
			return ctx.Err()
		}
	}
}

func (w *writer) Commit() wal.LSN {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.log.commit
}

func (w *writer) Done() <-chan struct{} { return w.done }

func (w *writer) Err() error {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return w.err
}

func (w *writer) Close() error {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	w.end(errors.New("closed"))
	return nil
}
