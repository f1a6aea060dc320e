package proto

import (
	"slices"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"google.golang.org/grpc/codes"
)

// Reasons that the rules of the protocol do not know: for calls that are not
// part of an Append stream and for a node that is not ready. A
// consensus.Error with one of them travels like every other.
const (
	ReasonNotFound      consensus.Reason = "NOT_FOUND"      // no such timeline on this node
	ReasonAlreadyExists consensus.Reason = "ALREADY_EXISTS" // the name is taken by another creation
	ReasonVoted         consensus.Reason = "VOTED"          // a copy that has voted is never stamped anew
	ReasonTrimmed       consensus.Reason = "TRIMMED"        // a read below the oldest LSN, which is Expected
	ReasonAboveHorizon  consensus.Reason = "ABOVE_HORIZON"  // a trim above the horizon, which is Expected
	ReasonPinnedTerm    consensus.Reason = "PINNED_TERM"    // a recovery read whose term is not the log's last, or is not any more
	ReasonCorrupt       consensus.Reason = "CORRUPT"        // the bytes asked for are damaged here; another acceptor has them
	ReasonBusy          consensus.Reason = "BUSY"           // a limit of the node is reached; try again
	ReasonStarting      consensus.Reason = "STARTING"       // the node is not ready yet
	ReasonDraining      consensus.Reason = "DRAINING"       // the node is shutting down
	ReasonInternal      consensus.Reason = "INTERNAL"       // a fault of the program
	ReasonOther         consensus.Reason = "OTHER"          // a reason that this version does not know
)

// codeOf says how each reason looks to a client that knows gRPC only. It is
// the closed list of reasons.
//
// FAILED_PRECONDITION: do something else first, do not just retry.
// INVALID_ARGUMENT: this message will never be accepted. UNAVAILABLE and
// RESOURCE_EXHAUSTED: the same may work later. DATA_LOSS: proven corruption, and nothing less.
var codeOf = map[consensus.Reason]codes.Code{
	consensus.ReasonProtocol:       codes.InvalidArgument,
	consensus.ReasonChecksum:       codes.InvalidArgument,
	consensus.ReasonTooLarge:       codes.InvalidArgument,
	consensus.ReasonWrongTimeline:  codes.FailedPrecondition,
	consensus.ReasonWrongSystem:    codes.FailedPrecondition,
	consensus.ReasonMembership:     codes.FailedPrecondition,
	consensus.ReasonStaleStream:    codes.FailedPrecondition,
	consensus.ReasonNotElected:     codes.FailedPrecondition,
	consensus.ReasonDiverged:       codes.FailedPrecondition,
	consensus.ReasonBelowCommit:    codes.FailedPrecondition,
	consensus.ReasonGap:            codes.FailedPrecondition,
	consensus.ReasonRewrite:        codes.FailedPrecondition,
	consensus.ReasonHistoryTooLong: codes.FailedPrecondition,
	consensus.ReasonLost:           codes.FailedPrecondition,
	consensus.ReasonPoisoned:       codes.Unavailable,
	consensus.ReasonQuarantined:    codes.DataLoss,
	consensus.ReasonNoSpace:        codes.ResourceExhausted,
	ReasonNotFound:                 codes.NotFound,
	ReasonAlreadyExists:            codes.AlreadyExists,
	ReasonVoted:                    codes.FailedPrecondition,
	ReasonTrimmed:                  codes.OutOfRange,
	ReasonAboveHorizon:             codes.FailedPrecondition,
	ReasonPinnedTerm:               codes.FailedPrecondition,
	ReasonCorrupt:                  codes.DataLoss,
	ReasonBusy:                     codes.ResourceExhausted,
	ReasonStarting:                 codes.Unavailable,
	ReasonDraining:                 codes.Unavailable,
	ReasonInternal:                 codes.Internal,
	ReasonOther:                    codes.Unknown,
}

// Reasons lists every reason that can cross the wire, sorted. It is the closed
// set for metric labels.
func Reasons() []consensus.Reason {
	out := make([]consensus.Reason, 0, len(codeOf))
	for r := range codeOf {
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}

// Code is the gRPC code that a reason travels under; Unknown for one that is not listed.
func Code(r consensus.Reason) codes.Code {
	if c, ok := codeOf[r]; ok {
		return c
	}
	return codes.Unknown
}
