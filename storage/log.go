package storage

import (
	"errors"
	"path"
	"slices"
	"sync"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Log is one timeline's log, open. See the package comment for who may call
// what at the same time.
//
// An open, idle Log costs about 1 KiB, 150 bytes for each of its segments, up
// to 1.5 KiB for each segment that was read or written, and a copy of its
// state; and one descriptor while a segment is open for writing, none after Idle.
type Log struct {
	cfg      Config
	readOnly bool

	w writer // the writing goroutine's own

	prepareMu sync.Mutex // held by Prepare and Reclaim, which do I/O
	anchored  bool       // under prepareMu: the names found at opening are durable

	// mu guards what follows. It is never held across I/O.
	mu    sync.Mutex
	table table
	flush wal.LSN   // end of what is durable
	write wal.LSN   // end of what was handed to the file
	saved *logState // the last durable state; never changed, only replaced

	health   wal.Health
	err      error // what every later write is answered with
	damage   []Damage
	recorded int // damages that the record beside the segments holds

	nextNumber uint64     // of the segment after the newest one that was begun
	prepared   *segment   // ready to be begun, numbered nextNumber
	preparedAs vfs.File   // open for writing
	full       bool       // the last preparation failed for want of space
	garbage    table      // oldest first: trimmed segments, to be recycled or removed
	reuse      int        // how many of garbage are worth keeping
	trimmedAt  uint64     // nextNumber at the last Trim
	leftover   []uint64   // higher-numbered files without a head, found at opening, rising
	retired    []vfs.File // sealed segments' descriptors, for Prepare to close

	readers []*Reader
	closed  bool
}

// State returns the state as it was last saved, or found at opening; its commit
// LSN is then the highest that any frame carries. The result is the caller's own.
func (l *Log) State() wal.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.saved == nil {
		return wal.State{}
	}
	return l.saved.State.Clone()
}

// WriteLSN is the end of what has been handed to the file.
func (l *Log) WriteLSN() wal.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write
}

// FlushLSN is the end of what is durable here.
func (l *Log) FlushLSN() wal.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flush
}

// OldestLSN is the lowest position that can be read.
func (l *Log) OldestLSN() wal.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldest()
}

func (l *Log) oldest() wal.LSN {
	if l.saved == nil {
		return 0
	}
	return max(l.saved.trim, l.saved.FirstLSN)
}

// Health says whether this copy can be relied on: wal.Healthy, wal.Poisoned
// after a failed write or sync, wal.Quarantined when damage is known, wal.Lost
// when that damage may include the state.
func (l *Log) Health() wal.Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health
}

// Err is nil while the log takes writes; otherwise what they are answered with.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Damage lists the damage known so far, found at opening, by readers and by scrubbing.
func (l *Log) Damage() []Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.damage)
}

// SegmentInfo describes one segment for status and dump.
type SegmentInfo struct {
	Number   uint64
	Name     string
	Bytes    int64
	LowLSN   wal.LSN // positions from here up to the next segment's LowLSN are here
	FirstSeq uint64
	LastSeq  uint64
	Missing  bool
	Trimmed  bool // waits to be recycled or removed
}

// Segments lists the log's segments, oldest first.
func (l *Log) Segments() []SegmentInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	infos := make([]SegmentInfo, 0, len(l.garbage)+len(l.table))
	for i, t := range [2]table{l.garbage, l.table} {
		for _, s := range t {
			infos = append(infos, SegmentInfo{
				Number: s.number, Name: segmentName(s.number), Bytes: s.size, LowLSN: s.low,
				FirstSeq: s.firstSeq, LastSeq: s.lastSeq, Missing: s.missing, Trimmed: i == 0,
			})
		}
	}
	return infos
}

// Bytes is what the log's segments take on disk, trimmed and prepared ones included.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int64
	for _, t := range [2]table{l.garbage, l.table} {
		for _, s := range t {
			n += s.size
		}
	}
	if l.prepared != nil {
		n += l.prepared.size
	}
	return n
}

// Close closes the log's files and ends its readers. With st it first writes
// st as a quiet state frame, if anything was written since the last state
// frame: it proves the last data frames and saves the commit. Without, it
// writes nothing. The files are closed whatever the error; closing again does nothing.
// It belongs to the writing goroutine.
func (l *Log) Close(st *wal.State) error {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return nil
	}
	var err error
	if st != nil && l.Err() == nil && l.w.unproved {
		if err = l.SaveState(st, l.w.end); err == nil {
			err = l.Sync()
		}
	}
	l.prepareMu.Lock() // a preparation in flight ends first
	defer l.prepareMu.Unlock()
	l.mu.Lock()
	l.closed = true
	if l.err == nil {
		l.err = ErrClosed
	}
	readers := l.readers
	l.readers = nil
	files := append(l.retired, l.preparedAs, l.w.file)
	l.retired, l.preparedAs, l.w.file = nil, nil, nil
	l.mu.Unlock()
	for _, r := range readers {
		r.end()
	}
	for _, f := range files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// Idle gives back the descriptors and the buffers of a log that is not being
// written: the next write opens the segment again. It belongs to the writing
// goroutine, after a Sync; at any other time it does nothing.
func (l *Log) Idle() {
	if l.w.dirty || l.Err() != nil {
		return
	}
	l.prepareMu.Lock()
	l.mu.Lock()
	files := append(l.retired, l.preparedAs, l.w.file)
	l.retired, l.preparedAs, l.w.file = nil, nil, nil
	l.mu.Unlock()
	l.prepareMu.Unlock()
	for _, f := range files {
		if f != nil {
			_ = f.Close() // all that was written was synced
		}
	}
	l.w.buf, l.w.parts, l.w.iov = nil, nil, nil
}

// file is the path of a file in the timeline's directory.
func (l *Log) file(name string) string { return path.Join(l.cfg.Dir, name) }

// fail poisons the log and returns what to answer.
func (l *Log) fail(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = &PoisonedError{cause}
		l.health = wal.Poisoned
	}
	return l.err
}

// damageMax bounds what is remembered of damage. A disk that has more is not worth a closer description.
const damageMax = 1024

// addDamage records damage found while the log is open and quarantines it.
// It is called with mu held.
func (l *Log) addDamage(d Damage) {
	if slices.Contains(l.damage, d) {
		return
	}
	if l.health == wal.Healthy {
		l.health = wal.Quarantined
	}
	if len(l.damage) < damageMax {
		l.damage = append(l.damage, d)
	} else if last := &l.damage[damageMax-1]; d.Begin < d.End {
		if last.Begin == last.End {
			last.Begin, last.End = d.Begin, d.End
		}
		last.Begin, last.End = min(last.Begin, d.Begin), max(last.End, d.End)
		last.Reason = "more damage than can be listed"
	}
}
