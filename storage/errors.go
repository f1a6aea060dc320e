package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

var (
	// ErrNotFound: the directory does not exist or holds no segment. For a
	// node that should have the timeline that is a lost disk, never an empty log.
	ErrNotFound = errors.New("no log here")

	// ErrExists: Create was asked for a timeline that is there already.
	ErrExists = errors.New("the timeline exists")

	// ErrClosed: the log or reader was closed.
	ErrClosed = errors.New("log is closed")

	// ErrReadOnly: the log was opened for reading only, or is quarantined.
	ErrReadOnly = errors.New("log is open for reading only")

	// ErrNoSegment: a write with no segment ready for it. Space says so beforehand.
	ErrNoSegment = errors.New("no segment is prepared")
)

// PoisonedError is what every call answers once a write or sync has failed.
// Nothing that was not synced before may be acknowledged, and only opening the
// log again tells what the disk holds.
type PoisonedError struct{ Cause error }

func (e *PoisonedError) Error() string {
	return "log is poisoned by its first disk error; it must be opened again: " + e.Cause.Error()
}
func (e *PoisonedError) Unwrap() error { return e.Cause }

// MisuseError is a call that breaks the contract of the method. It poisons the
// log like a disk error, because its caller's idea of the log is wrong.
type MisuseError struct{ Reason string }

func (e *MisuseError) Error() string { return "storage called against its contract: " + e.Reason }

// TrimmedError answers a read below the oldest position that is kept.
type TrimmedError struct{ At, Oldest wal.LSN }

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("position %v was trimmed; the oldest kept is %v", e.At, e.Oldest)
}

// TruncatedError answers a read by a reader beneath which the log was cut: what
// it has read from End on is no longer in the log.
type TruncatedError struct{ At, End wal.LSN }

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the log was truncated to %v below this reader's position %v", e.End, e.At)
}

// EndUnknown is the End of damage whose upper end cannot be told.
const EndUnknown = ^wal.LSN(0)

// Damage is a place on disk that does not hold what was once durable there.
type Damage struct {
	File   string // name in the timeline's directory
	Offset int64  // where in the file, as far as that can be told
	Reason string

	// [Begin, End) are the positions that cannot be served. Empty if only
	// bookkeeping was hit, which loses nothing by itself, and for an older segment
	// that is too short until a reader or a scrub has found out which are gone.
	Begin, End wal.LSN
}

func (d Damage) String() string {
	at := fmt.Sprintf("%s at offset %d: %s", d.File, d.Offset, d.Reason)
	switch {
	case d.End == EndUnknown:
		return fmt.Sprintf("%s (everything from %v on is in doubt)", at, d.Begin)
	case d.Begin < d.End:
		return fmt.Sprintf("%s (positions %v to %v)", at, d.Begin, d.End)
	}
	return at + " (no position is known to be lost)"
}

// Covers reports whether the byte at lsn cannot be served because of d.
func (d Damage) Covers(lsn wal.LSN) bool { return d.Begin <= lsn && lsn < d.End }

// DamageError answers a read of a damaged position. The bytes exist elsewhere
// or nowhere; it is never the end of the log.
type DamageError struct{ Damage Damage }

func (e *DamageError) Error() string { return "damaged log: " + e.Damage.String() }

// CorruptionError is what opening reports when something once durable is gone
// or changed. If a Log comes with it, it is quarantined: it serves what is undamaged and takes no writes.
type CorruptionError struct {
	Dir    string
	Damage []Damage // never empty

	// StateLost: a vote or an election may be among what is gone. Then this
	// copy must never vote again as if it remembered: it is a lost disk.
	StateLost bool
}

func (e *CorruptionError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "log in %s is damaged", e.Dir)
	if e.StateLost {
		b.WriteString(" and its newest state may be lost")
	}
	for i, d := range e.Damage {
		if i == 8 {
			fmt.Fprintf(&b, "; and %d more", len(e.Damage)-i)
			break
		}
		b.WriteString("; " + d.String())
	}
	return b.String()
}
