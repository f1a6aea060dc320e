package storage

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Trim lets go of everything below before: it writes st with the new trim LSN
// as a state frame and syncs it. From then on reads below before answer
// *TrimmedError, and Prepare may recycle and Reclaim remove the segments that
// lie wholly below, at the log's oldest end only.
//
// The writing goroutine calls it between batches, when Space(0, 0) is
// SpaceOpen. before is at most st.Horizon; at or below OldestLSN it does nothing.
// Any error is final for this Log.
func (l *Log) Trim(st *wal.State, before wal.LSN) error {
	if err := l.Err(); err != nil {
		return err
	}
	w := &l.w
	if before <= max(w.state.trim, w.state.FirstLSN) {
		return nil
	}
	if before > st.Horizon {
		return l.fail(&MisuseError{fmt.Sprintf("trim to %v, above the horizon %v", before, st.Horizon)})
	}
	l.mu.Lock()
	keep := l.firstNeeded(before)
	oldest := l.table[keep].number
	l.mu.Unlock()
	if err := l.saveState(st, w.end, before, oldest); err != nil {
		return err
	}
	if err := l.Sync(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trimmedAt > 0 {
		l.reuse = int(min(l.nextNumber-l.trimmedAt, reuseMax))
	}
	l.trimmedAt = l.nextNumber
	l.garbage = append(l.garbage, l.table[:keep]...)
	l.table = append(table(nil), l.table[keep:]...)
	return nil
}

// firstNeeded is the index of the oldest segment with a byte at or above
// before that still counts. The newest segment is always needed: it holds the
// state. It is called with mu held.
func (l *Log) firstNeeded(before wal.LSN) int {
	for i := range l.table {
		if i == len(l.table)-1 || l.table.liveEnd(i) > before && l.table[i].floor < l.table.liveEnd(i) {
			return i
		}
	}
	return 0
}

// reuseMax bounds the trimmed segments that are kept to be recycled.
const reuseMax = 8

// Reclaim removes trimmed segments, except those that Prepare may recycle until
// the next Trim (as many as were begun between the last two, at least one),
// oldest first and each durably before the next. Like Prepare it is for a background
// goroutine. It stops at a segment that a reader has open.
func (l *Log) Reclaim() error {
	l.prepareMu.Lock()
	defer l.prepareMu.Unlock()
	for {
		l.mu.Lock()
		var s *segment
		if n := len(l.garbage); n > 0 && l.garbage[0].pins == 0 && l.err == nil {
			if s = l.garbage[0]; n <= max(l.reuse, 1) && s.size >= l.cfg.segmentBytesMin() {
				s = nil
			}
		}
		l.mu.Unlock()
		if s == nil {
			return nil
		}
		err := l.cfg.FS.Remove(l.file(segmentName(s.number)))
		if err == nil {
			err = l.cfg.FS.SyncDir(l.cfg.Dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove a trimmed segment: %w", err)
		}
		l.mu.Lock()
		l.garbage = l.garbage[1:]
		l.mu.Unlock()
		l.cfg.Observer.SegmentEvent(SegmentRemoved, s.size)
	}
}
