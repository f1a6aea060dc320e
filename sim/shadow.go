package sim

import (
	"slices"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// shadow is the world's own book of one disk: what a log was told to hold.
// Bytes are only appended to and otherwise copied, so a slice taken once stays
// as it was.
type shadow struct {
	first wal.LSN
	data  []byte // from first on
	state wal.State
}

func (s *shadow) end() wal.LSN { return s.first + wal.LSN(len(s.data)) }

func (s *shadow) at(begin, end wal.LSN) []byte { return s.data[begin-s.first : end-s.first] }

func (s *shadow) cut(end wal.LSN) {
	if end < s.end() {
		s.data = slices.Clone(s.data[:end-s.first])
	}
}

// change is one call that a log took and has not synced yet.
type change struct {
	save   *wal.State
	end    wal.LSN
	term   wal.Term
	chunks []wal.Chunk
}

// recorder stands between the loop and its log, does what the log does, and
// writes down in the shadow what has become durable.
type recorder struct {
	n       *node
	pending []change
	writes  int // since the last sync
}

func (r *recorder) Space(frames, bytes int) wal.Space { return r.n.log.Space(frames, bytes) }

func (r *recorder) SaveState(st *wal.State, end wal.LSN) error {
	r.writes++
	saved := st.Clone()
	r.pending = append(r.pending, change{save: &saved, end: end})
	return r.n.log.SaveState(st, end)
}

func (r *recorder) Append(term wal.Term, commit wal.LSN, chunks []wal.Chunk, seal bool) error {
	r.writes++
	c := change{term: term}
	for _, x := range chunks {
		x.Data = slices.Clone(x.Data)
		c.chunks = append(c.chunks, x)
	}
	r.pending = append(r.pending, c)
	return r.n.log.Append(term, commit, chunks, seal)
}

func (r *recorder) Seal() error {
	r.writes++
	return r.n.log.Seal()
}

func (r *recorder) Sync() error {
	if r.writes != 1 {
		r.n.w.fail("OneSyncPerBatch", "node %d syncs after %d writes", r.n.id, r.writes)
	}
	r.writes = 0
	if err := r.n.log.Sync(); err != nil {
		return err
	}
	for _, c := range r.pending {
		r.n.apply(c)
	}
	r.pending = r.pending[:0]
	return nil
}
