package sim

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// recoveryRead serves a recovery read: up to the flush LSN, and only while the
// last term of the stored history is the reader's (A6). An error ends it.
// A copy that proves damaged says so, and quarantines itself.
func (n *node) recoveryRead(q *request) (data []byte, damaged bool) {
	if n.loop == nil || n.fault.Crashed() || n.health != wal.Healthy && n.health != wal.Poisoned {
		return nil, false
	}
	p := n.loop.Positions()
	if p.StoredLastTerm != q.term {
		return nil, false
	}
	data, err := n.read(q.at, min(p.Flush, q.at+8<<10))
	return data, n.damage(err)
}

// damage quarantines the copy if err says that it is damaged.
func (n *node) damage(err error) bool {
	var d *storage.DamageError
	if !errors.As(err, &d) {
		return false
	}
	if !n.damaged {
		n.w.fail("FalseAlarm", "node %d, whose disk is sound: %v", n.id, err)
	}
	n.w.note("damage", n.index, int(d.Damage.Begin), 0)
	n.loop.Post(flush.Quarantine())
	n.wake()
	return true
}

// read returns the log's bytes from at up to limit, or as far as they go.
func (n *node) read(at, limit wal.LSN) ([]byte, error) {
	r := n.log.NewReader(at)
	defer func() { _ = r.Close() }() // reading only
	var data []byte
	for {
		f, err := r.Next(limit)
		if errors.Is(err, io.EOF) {
			if r.Position() < limit {
				n.w.fail("18 NoSilentEnd", "node %d ends at %v, asked for bytes up to %v", n.id, r.Position(), limit)
			}
			return data, nil
		}
		if err != nil {
			return data, err
		}
		if !f.Chunk.Intact() && f.Chunk.Begin == at+wal.LSN(len(data)) {
			n.w.fail("Checksum", "node %d serves [%v, %v) without its checksum", n.id, f.Chunk.Begin, f.Chunk.End())
		}
		data = append(data, f.Chunk.Data...)
		if len(data) == 0 || r.Position() >= limit {
			return data, nil
		}
	}
}

// consumer reads committed bytes in order, from one acceptor and then another.
type consumer struct {
	w    *world
	next wal.LSN
}

func (c *consumer) read(n *node) {
	if n.loop == nil || n.health == wal.Lost || n.fault.Crashed() {
		return
	}
	p := n.loop.Positions()
	if p.Commit <= c.next {
		return
	}
	limit := min(p.Commit, c.next+16<<10)
	data, err := n.read(c.next, limit)
	var trimmed *storage.TrimmedError
	switch {
	case errors.As(err, &trimmed):
		if trimmed.Oldest <= c.next || trimmed.Oldest > p.Horizon {
			c.w.fail("17 TrimSafety", "node %d answers %v with horizon %v", n.id, err, p.Horizon)
		}
		c.next = trimmed.Oldest
		return
	case n.damage(err):
	case err != nil && !n.damaged:
		c.w.fail("18 NoSilentEnd", "node %d cannot be read at %v: %v", n.id, c.next, err)
	}
	from := int(c.next - c.w.first)
	if from+len(data) > len(c.w.committed) || !bytes.Equal(data, c.w.committed[from:from+len(data)]) {
		c.w.fail("14 ReadCommitted", "node %d serves other bytes at [%v, %v) than were committed", n.id, c.next, c.next+wal.LSN(len(data)))
	}
	c.next += wal.LSN(len(data))
}

// recovered compares what a disk gives back with what was acknowledged.
func (n *node) recovered() {
	st, end := n.log.State(), n.log.FlushLSN()
	if n.damaged {
		n.adopt(st, end)
		return
	}
	if n.health != wal.Healthy {
		n.w.fail("FalseAlarm", "node %d, whose disk is sound, opens %v", n.id, n.health)
		return
	}
	was := n.shadow
	// What was written and not synced may be there, in the order of writing.
	fits := n.agrees(was, st, end)
	for _, c := range n.rec.pending {
		for i := range max(1, len(c.chunks)) {
			next := was
			next.data = slices.Clone(was.data)
			if c.save != nil {
				next.cut(c.end)
				next.state = c.save.Clone()
			} else {
				next.data = append(next.data, c.chunks[i].Data...)
			}
			was = next
			fits = fits || n.agrees(was, st, end)
		}
	}
	n.rec.pending = nil
	if !fits {
		n.w.fail("11 AckDurable", "node %d comes back with term %d of %v, history %v, end %v, commit %v, horizon %v; it had term %d of %v, history %v, end %v, commit %v, horizon %v", n.id,
			st.Term, st.VotedFor, st.History, end, st.Commit, st.Horizon, n.shadow.state.Term, n.shadow.state.VotedFor, n.shadow.state.History, n.shadow.end(), n.shadow.state.Commit, n.shadow.state.Horizon)
		return
	}
	n.adopt(st, end)
}

func (n *node) agrees(s shadow, st wal.State, end wal.LSN) bool {
	if s.end() != end || st.Term != s.state.Term || st.VotedFor != s.state.VotedFor || !st.History.Equal(s.state.History) || st.Commit < s.state.Commit || st.Horizon < s.state.Horizon {
		return false
	}
	oldest := n.log.OldestLSN()
	data, err := n.read(oldest, end)
	return err == nil && bytes.Equal(data, s.at(oldest, end))
}

// adopt makes the books agree with the disk.
func (n *node) adopt(st wal.State, end wal.LSN) {
	n.stored = st.History.LastTerm()
	if n.damaged {
		// It need not be readable; what it holds came from these.
		for _, c := range n.rec.pending {
			for _, x := range c.chunks {
				if n.shadow.end() < end {
					n.shadow.data = append(slices.Clone(n.shadow.data), x.Data...)
				}
			}
		}
		n.rec.pending = nil
		n.shadow.cut(end)
		n.shadow.state = st
		return
	}
	oldest := n.log.OldestLSN()
	keep := slices.Clone(n.shadow.data[:min(len(n.shadow.data), int(oldest-n.w.first))])
	data, err := n.read(oldest, end)
	if err != nil {
		n.w.fail("18 NoSilentEnd", "node %d cannot be read after opening: %v", n.id, err)
		return
	}
	n.shadow = shadow{first: n.w.first, data: append(keep, data...), state: st}
}
