package flush

import (
	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Outcome says what a turn came to.
type Outcome uint8

const (
	// Idle: nothing was waiting.
	Idle Outcome = iota
	// Done: something was performed; there may be more.
	Done
	// Blocked: the next message waits until the log's next segment is
	// prepared. A turn changes nothing until then.
	Blocked
)

// Turn is what the observer learns of one performed batch.
type Turn struct {
	Requests   int   // messages and events that were taken
	Heard      int   // of these, messages of proposers that were not discarded
	Heartbeats int   // of these, appends without data
	Appends    int   // data frames
	Bytes      int   // WAL
	Wrote      bool  // the batch was written and synced
	Err        error // the disk's refusal, which poisons the log

	// Saved is the state that was made durable, nil if it did not change; it
	// must not be written to. Cut is how much WAL that truncated.
	Saved *wal.State
	Cut   wal.LSN

	// Where the time went, in nanoseconds: the oldest message of the batch
	// from received to taken, handing the batch to the file, the fdatasync.
	QueueNanos int64
	WriteNanos int64
	SyncNanos  int64

	// Refused lists why streams were ended. It is valid during the call only.
	Refused []consensus.Reason
}
