package consensus

import "github.com/seed7f3f3bb8/holdfast/wal"

// StreamID identifies one proposer's stream at one acceptor. The shell draws
// them, never reuses one, and 0 is none.
type StreamID uint64

// Batch describes what one turn must do, in the order in which its fields
// stand. The zero value is an empty batch; Reset makes it empty again and keeps its memory.
type Batch struct {
	// Save is a state frame to write, nil if the state does not change. If
	// SaveEnd is below the write LSN the frame is the truncation to SaveEnd.
	Save    *wal.State
	SaveEnd wal.LSN

	// Term, Commit and Appends are the data frames to write. The chunks are
	// contiguous and begin at the write LSN. Commit is what is known committed
	// before this batch.
	Term    wal.Term
	Commit  wal.LSN
	Appends []wal.Chunk

	// Replies are filled in by Acceptor.Flushed and sent after the sync. The
	// AppendResponses share memory with the batch and are valid until Reset.
	Replies []Reply

	// Ends are the streams to end after the replies.
	Ends []End

	control bool    // a control message joined: the batch is closed
	acks    []ack   // streams that are owed an AppendResponse
	pending []Reply // replies of control messages, released by Flushed
	commit  wal.LSN // highest commit LSN announced by the batch's appends
	horizon wal.LSN // likewise
	slots   []AppendResponse
}

// Reply is a message to send on a stream.
type Reply struct {
	Stream  StreamID
	Message Message
}

// End tells the shell to end a stream with Err and to discard what it has queued.
type End struct {
	Stream StreamID
	Err    *Error
}

type ack struct {
	stream StreamID
	term   wal.Term
}

// Writes reports whether performing the batch touches the disk.
func (b *Batch) Writes() bool { return b.Save != nil || len(b.Appends) > 0 }

// Empty reports whether the batch has no effect at all.
func (b *Batch) Empty() bool {
	return !b.control && b.Save == nil && len(b.Appends) == 0 && len(b.acks) == 0 && len(b.pending) == 0 && len(b.Replies) == 0 && len(b.Ends) == 0 &&
		b.commit == 0 && b.horizon == 0
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Appends)
	clear(b.Replies)
	clear(b.Ends)
	clear(b.pending)
	*b = Batch{Appends: b.Appends[:0], Replies: b.Replies[:0], Ends: b.Ends[:0], acks: b.acks[:0], pending: b.pending[:0], slots: b.slots[:0]}
}
