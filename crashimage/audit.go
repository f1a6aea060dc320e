package crashimage

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// recovered is what the production code makes of a data directory.
type recovered struct {
	state wal.State
	flush wal.LSN
}

// audit opens the log under a data directory and holds it against what was
// promised. An error is a broken promise.
func audit(dataDir string, book *Book, p Promise) (*recovered, error) {
	log, err := storage.Open(storage.Config{Dir: filepath.Join(dataDir, book.Timeline.Tenant, book.Timeline.Timeline)})
	if errors.Is(err, storage.ErrNotFound) && !p.Created {
		return nil, nil // it was being made
	}
	if log != nil {
		defer log.Close(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("the log does not open: %w", err)
	}
	r := &recovered{log.State(), log.FlushLSN()}
	if err := r.state.History.Validate(); err != nil {
		return r, err
	}
	e, err := checkState(book, &p, r, log.OldestLSN())
	if err != nil {
		return r, err
	}
	return r, checkBytes(book, e, r, log)
}

// checkState compares everything but the bytes. It returns the election that
// the log's history is of, nil if there was none.
func checkState(book *Book, p *Promise, r *recovered, oldest wal.LSN) (*election, error) {
	st := &r.state
	book.mu.Lock()
	defer book.mu.Unlock()
	switch {
	case st.Creation != book.Creation:
		return nil, fmt.Errorf("it is creation %v, expected %v", st.Creation, book.Creation)
	case st.Term < p.Term:
		return nil, fmt.Errorf("the term went back to %d; a vote in term %d was promised", st.Term, p.Term)
	case st.Term == p.Term && st.VotedFor != p.Vote:
		return nil, fmt.Errorf("the vote of term %d went from %v to %v", p.Term, p.Vote, st.VotedFor)
	case st.Term != 0 && st.VotedFor != book.campaigns[st.Term]:
		return nil, fmt.Errorf("the vote of term %d is %v's, who never asked for it; %v did", st.Term, st.VotedFor, book.campaigns[st.Term])
	case st.Commit < p.Commit:
		return nil, fmt.Errorf("the saved commit went back from %v to %v", p.Commit, st.Commit)
	case st.Horizon > st.Commit || st.Commit > r.flush:
		return nil, fmt.Errorf("horizon %v, commit %v, flush %v are not in order", st.Horizon, st.Commit, r.flush)
	case oldest > max(p.Oldest, book.First):
		return nil, fmt.Errorf("everything below %v is gone; only what is below %v was to be trimmed", oldest, p.Oldest)
	}
	last := st.History.LastTerm()
	if last < p.Elected {
		return nil, fmt.Errorf("the history ends with term %d; term %d was acknowledged", last, p.Elected)
	}
	if last == 0 {
		if r.flush != book.First {
			return nil, fmt.Errorf("the log ends at %v; nobody was elected, it began at %v", r.flush, book.First)
		}
		return nil, nil
	}
	e := book.elections[last]
	if e == nil {
		return nil, fmt.Errorf("the history ends with term %d, which nobody won", last)
	}
	if n := len(e.history) - len(st.History); n < 0 || !e.history[n:].Equal(st.History) || n > 0 && e.history[n].LSN > st.Horizon {
		return nil, fmt.Errorf("the history is %v, term %d was won with %v", st.History, last, e.history)
	}
	least := e.resume
	if last == p.Elected {
		least = max(least, p.Flush)
	}
	if r.flush < least {
		return nil, fmt.Errorf("the log of term %d ends at %v; %v was acknowledged", last, r.flush, least)
	}
	if r.flush > e.sent {
		return nil, fmt.Errorf("the log of term %d ends at %v; nobody sent anything above %v", last, r.flush, e.sent)
	}
	return e, nil
}

// checkBytes reads everything and compares every byte.
func checkBytes(book *Book, e *election, r *recovered, log *storage.Log) error {
	reader := log.NewReader(log.OldestLSN())
	defer reader.Close()
	for {
		f, err := reader.Next(r.flush)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read at %v: %w", reader.Position(), err)
		}
		if !f.Chunk.Intact() {
			return fmt.Errorf("the chunk at %v does not have its checksum", f.Chunk.Begin)
		}
		if e == nil {
			return fmt.Errorf("there are bytes at %v; nobody was elected", f.Chunk.Begin)
		}
		if last := f.Chunk.End() - 1; e.history.TermAt(f.Chunk.Begin) != f.Term || e.history.TermAt(last) != f.Term {
			return fmt.Errorf("[%v, %v) was written by term %d; the history says %v", f.Chunk.Begin, f.Chunk.End(), f.Term, e.history)
		}
		if at, bad := differs(f.Chunk.Data, book.Seed, f.Term, f.Chunk.Begin); bad {
			return fmt.Errorf("the byte at %v is not what term %d sent", at, f.Term)
		}
	}
	if reader.Position() != r.flush {
		return fmt.Errorf("reading ended at %v, the log ends at %v", reader.Position(), r.flush)
	}
	return nil
}
