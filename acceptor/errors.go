package acceptor

import (
	"errors"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proto"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// What streams and calls end with when it is not about their messages.
var (
	drainingError = &consensus.Error{Reason: proto.ReasonDraining, Detail: "this node is shutting down"}
	closedError   = &consensus.Error{Reason: proto.ReasonStarting, Detail: "the timeline was closed here; connect again"}
	reopenError   = &consensus.Error{Reason: proto.ReasonStarting, Detail: "the timeline is being opened again here; connect again"}
)

func notFound(id wal.TimelineID) *consensus.Error {
	return &consensus.Error{Reason: proto.ReasonNotFound, Detail: fmt.Sprintf("%v is not on this node", id)}
}

func deletedError(id wal.TimelineID) *consensus.Error {
	return &consensus.Error{Reason: proto.ReasonNotFound, Detail: fmt.Sprintf("%v was deleted on this node", id)}
}

func trimmedError(at, oldest wal.LSN) error {
	return &consensus.Error{Reason: proto.ReasonTrimmed, Expected: oldest, Detail: fmt.Sprintf("%v was trimmed here; the oldest that can be read is %v", at, oldest)}
}

// checkCreation refuses a call that is about another creation of the name.
func checkCreation(id wal.TimelineID, have, asked wal.CreationID) error {
	if have != asked {
		return &consensus.Error{Reason: consensus.ReasonWrongTimeline, Detail: fmt.Sprintf("%v was created as %v here, the call is about %v: that is another log under the same name", id, have, asked)}
	}
	return nil
}

// explain turns what a reader of the log met into the protocol's errors. What
// it shows of the disk is counted, and damage quarantines the copy.
func (r *replica) explain(err error) error {
	var trimmed *storage.TrimmedError
	var cut *storage.TruncatedError
	var damage *storage.DamageError
	switch {
	case errors.As(err, &trimmed):
		return trimmedError(trimmed.At, trimmed.Oldest)
	case errors.As(err, &damage):
		r.quarantine(err)
		return &consensus.Error{Reason: proto.ReasonCorrupt, Expected: damage.Damage.Begin, Detail: err.Error()}
	case errors.As(err, &cut):
		return &consensus.Error{Reason: proto.ReasonPinnedTerm, Detail: err.Error()}
	case errors.Is(err, storage.ErrClosed):
		return closedError
	}
	r.t.node.cfg.Metrics.DiskErrors.Inc(metrics.DiskRead)
	return err
}

// unhealthy is why the copy takes no writes.
func (r *replica) unhealthy() error {
	v := r.view()
	e := &consensus.Error{Term: v.state.Term, Detail: v.why}
	switch v.health {
	case wal.Poisoned:
		e.Reason = consensus.ReasonPoisoned
	case wal.Quarantined:
		e.Reason = consensus.ReasonQuarantined
	case wal.Lost:
		e.Reason = consensus.ReasonLost
	default:
		return closedError // it has recovered meanwhile
	}
	return e
}
