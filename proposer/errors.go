package proposer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// ErrClosed is what a proposer or a reader says after its Close.
var ErrClosed = errors.New("closed")

// ErrNotFound: every acceptor that was asked answered that it has no such timeline.
var ErrNotFound = errors.New("no such timeline")

// ErrIncomplete: the creation of the timeline reached only some of its members.
var ErrIncomplete = errors.New("the creation is incomplete")

// ErrTooLarge: an append has more than AppendBytesMax bytes. Nothing of it was placed.
var ErrTooLarge = errors.New("the append is too large")

// ErrLogEnds: an append would pass wal.LSNMax, where positions end. Nothing of it was placed.
var ErrLogEnds = errors.New("the log has no positions left")

// FencedError stops a proposer for good: another one has won the log and
// written to it. Term is the winning term.
type FencedError = consensus.FencedError

// OutcomeUnknownError is returned for bytes that were placed in the log when
// the proposer stopped before it knew them committed. They may or may not
// survive; whoever opens the log next decides that by what it finds. Err says
// why the proposer stopped.
type OutcomeUnknownError struct {
	LSN    wal.LSN // what was waited for
	Commit wal.LSN // everything below is committed
	Err    error
}

func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("whether [%v, %v) is committed is unknown: the proposer stopped: %v", e.Commit, e.LSN, e.Err)
}

func (e *OutcomeUnknownError) Unwrap() error { return e.Err }

// RefusedError stops a proposer whose log so many members refuse that no
// majority is left: the timeline was deleted and created again, belongs to
// another database, or has other members by now.
type RefusedError struct{ Members []MemberError }

// MemberError is why one member does not take part.
type MemberError struct {
	Node wal.NodeID // 0 if it has not said who it is
	Addr string
	Err  error
}

func (e MemberError) Error() string {
	if e.Node == 0 {
		return fmt.Sprintf("%s: %v", e.Addr, e.Err)
	}
	return fmt.Sprintf("node %d at %s: %v", e.Node, e.Addr, e.Err)
}

func (e MemberError) Unwrap() error { return e.Err }

func (e *RefusedError) Error() string {
	return "no majority of the members is left that would take part: " + joinMembers(e.Members)
}

func (e *RefusedError) Unwrap() []error {
	errs := make([]error, len(e.Members))
	for i, m := range e.Members {
		errs[i] = m
	}
	return errs
}

func joinMembers(members []MemberError) string {
	parts := make([]string, len(members))
	for i, m := range members {
		parts[i] = m.Error()
	}
	return strings.Join(parts, "; ")
}
