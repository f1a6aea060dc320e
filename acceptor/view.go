package acceptor

import (
	"errors"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// view is what a node says of one copy.
type view struct {
	opened bool
	health wal.Health
	why    string // empty when the health is OK

	state       wal.State // zero if it cannot be read
	lastLogTerm wal.Term
	write       wal.LSN
	flush       wal.LSN
	commit      wal.LSN
	horizon     wal.LSN
	oldest      wal.LSN
	segments    int
	diskBytes   int64
	damage      []storage.Damage
	inboxBytes  int
}

// look returns what is known of the timeline without opening it for use. For a
// cold one that is what a look at the disk finds; it is remembered until the
// timeline is opened.
func (t *timeline) look() (*view, error) {
	if r := t.open.Load(); r != nil {
		return r.view(), nil
	}
	if v := t.cold.Load(); v != nil {
		return v, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lookLocked()
}

// lookLocked is look with mu held.
func (t *timeline) lookLocked() (*view, error) {
	if t.deleted {
		return nil, notFound(t.id)
	}
	if r := t.open.Load(); r != nil {
		return r.view(), nil
	}
	if v := t.cold.Load(); v != nil {
		return v, nil
	}
	if f := t.filling.Load(); f != nil {
		return filledView(f.log), nil
	}
	log, err := storage.OpenReadOnly(t.storageConfig())
	var corrupt *storage.CorruptionError
	switch {
	case log != nil:
		v := viewOf(log)
		if err != nil {
			v.why = err.Error()
		}
		if t.filled.Load() {
			v = filledView(log)
		}
		_ = log.Close(nil) // nothing was written
		t.cold.Store(v)
		return v, nil
	case errors.As(err, &corrupt), errors.Is(err, storage.ErrNotFound):
		v := &view{health: wal.Lost, why: err.Error()}
		t.cold.Store(v)
		return v, nil
	}
	return nil, fmt.Errorf("%v cannot be looked at: %w", t.id, err)
}

// viewOf is what an open log says by itself.
func viewOf(log *storage.Log) *view {
	v := &view{
		health: log.Health(), state: log.State(), flush: log.FlushLSN(), write: log.WriteLSN(),
		oldest: log.OldestLSN(), diskBytes: log.Bytes(), segments: len(log.Segments()),
		damage: log.Damage(),
	}
	v.commit, v.horizon = v.state.Commit, v.state.Horizon
	v.lastLogTerm = v.state.History.Visible(v.flush).LastTerm()
	return v
}

// filledView is viewOf the log of a copy for reading.
func filledView(log *storage.Log) *view {
	v := viewOf(log)
	v.health, v.why = wal.Lost, filledWhy(v.flush)
	return v
}

// view is what the replica knows now.
func (r *replica) view() *view {
	p := r.loop.Positions()
	v := viewOf(r.log)
	v.opened = true
	v.state = *r.loop.State()
	v.health, v.flush, v.commit, v.horizon, v.lastLogTerm = p.Health, p.Flush, p.Commit, p.Horizon, p.LastLogTerm
	v.write = max(v.write, v.flush)
	v.inboxBytes = r.loop.InboxBytes()
	if why := r.why.Load(); why != nil && v.health != wal.Healthy {
		v.why = *why
		if not := r.unrepaired.Load(); not != nil {
			v.why += "; it could not be repaired: " + *not
		}
	}
	return v
}
