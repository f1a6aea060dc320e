package consensus

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Reason says which rule a message broke. The set is closed; the names are
// used as metric labels and travel as ErrorInfo reasons.
type Reason string

// Reasons for which an acceptor ends a stream.
const (
	ReasonProtocol       Reason = "PROTOCOL"         // a message out of turn or of a wrong form
	ReasonWrongTimeline  Reason = "WRONG_TIMELINE"   // the greeting names another creation of the timeline
	ReasonWrongSystem    Reason = "WRONG_SYSTEM"     // another database's system identifier
	ReasonMembership     Reason = "MEMBERSHIP"       // generation or members do not fit
	ReasonStaleStream    Reason = "STALE_STREAM"     // a newer stream of the same proposer exists
	ReasonNotElected     Reason = "NOT_ELECTED"      // an append before this term's Elected was adopted
	ReasonDiverged       Reason = "DIVERGED"         // Elected computed from a log that has changed since: connect again
	ReasonBelowCommit    Reason = "BELOW_COMMIT"     // a truncation below the commit LSN
	ReasonGap            Reason = "GAP"              // an append above the write LSN
	ReasonRewrite        Reason = "REWRITE"          // an append below the write LSN
	ReasonChecksum       Reason = "CHECKSUM"         // data does not match its checksum
	ReasonTooLarge       Reason = "TOO_LARGE"        // a request above the stated limit
	ReasonPoisoned       Reason = "POISONED"         // this copy's disk failed
	ReasonQuarantined    Reason = "QUARANTINED"      // this copy is damaged
	ReasonLost           Reason = "LOST"             // this copy is gone
	ReasonNoSpace        Reason = "NO_SPACE"         // the append does not fit on the disk now; nothing was written
	ReasonHistoryTooLong Reason = "HISTORY_TOO_LONG" // more elections than the horizon has let go
)

// Error ends a stream. It is about one message of one stream; the log is unharmed.
type Error struct {
	Reason   Reason
	Term     wal.Term // the acceptor's term
	Expected wal.LSN  // the acceptor's write LSN, for GAP and REWRITE; the acceptor's divergence point, for DIVERGED; its commit, for BELOW_COMMIT
	Detail   string   // what was wrong and what was expected, for a person
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Reason, e.Detail) }
