package ingest

import (
	"context"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Elector opens the log for writing. It is the quorum as the bridge sees it.
type Elector interface {
	// Open campaigns until a term is won and its start is committed, however
	// long that takes. After each won vote, before anything changes on any
	// acceptor, it calls decide; an error from decide ends Open with that error
	// in its chain. decide is called again, possibly from another goroutine and
	// while the Writer is in use, whenever another campaign is won later.
	Open(ctx context.Context, systemID uint64, decide func(context.Context, Election) (Decision, error)) (Writer, error)

	// ReadDonor reads [begin, end) of the log that e describes, as its donor has
	// it, and calls each with successive pieces; they are valid during the call.
	// It is called from within decide. An error from each is returned as it is;
	// bytes that the donor has given back to its disk are a *TrimmedError.
	ReadDonor(ctx context.Context, e Election, begin, end wal.LSN, each func([]byte) error) error
}

// Writer is the log, open for this process alone. Its methods are safe for concurrent use.
type Writer interface {
	// Append places data behind what was appended before and returns when it is
	// placed, not when it is durable; the data is copied. It blocks while the
	// window is full.
	Append(ctx context.Context, data []byte) (begin, end wal.LSN, err error)
	// Wait returns nil once everything below lsn is committed. lsn may be
	// beyond what has been appended.
	Wait(ctx context.Context, lsn wal.LSN) error
	// Commit is the end of what is known to be committed.
	Commit() wal.LSN
	// Done is closed when the writer has stopped for good; Err says why. The
	// error of a writer that lost the log to another one is a *FencedError.
	Done() <-chan struct{}
	Err() error
	// Close gives the log up. What is not committed may be lost.
	Close() error
}

// Election is what a won vote found.
type Election struct {
	Term       wal.Term
	Donor      wal.NodeID
	History    wal.History // of the donor's log, visible part; empty: nobody has ever written
	Start      wal.LSN     // end of the donor's log
	SystemID   uint64      // 0 if none is stored
	Properties []byte      // as stored with the last election

	// Commit is the highest position that a voter knows to be committed;
	// MayBeCommitted the highest that can have been, given the votes. Nothing
	// below it may be given up. It falls as more members answer.
	Commit, MayBeCommitted wal.LSN
}

// Written reports whether anyone has ever written the log.
func (e Election) Written() bool { return len(e.History) > 0 }

// Decision says how the term begins.
type Decision struct {
	Start      wal.LSN // Election.Start, or lower down to MayBeCommitted: the log is cut there
	SystemID   uint64
	Properties []byte
}

// TrimmedError says that a log no longer holds bytes that old.
type TrimmedError struct {
	Oldest wal.LSN // the first byte that can be read
}

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("the log holds nothing below %v any more", e.Oldest)
}

// LogError is a fault of the log that trying again does not cure.
type LogError struct {
	Err    error
	Remedy string
}

func (e *LogError) Error() string { return fmt.Sprintf("%v; %s", e.Err, e.Remedy) }

func (e *LogError) Unwrap() error { return e.Err }

// FencedError says that another writer has taken the log over. It is final.
type FencedError struct {
	Term wal.Term // the winning term
	Err  error
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("fenced: another writer holds the log since term %d: %v", e.Term, e.Err)
}

func (e *FencedError) Unwrap() error { return e.Err }
