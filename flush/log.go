package flush

import "github.com/seed7f3f3bb8/holdfast/wal"

// Log is what the loop needs of storage. One goroutine, the loop's, calls the
// methods of one Log; others may read from the same log meanwhile.
//
// An error from SaveState, Append or Sync is final: the implementation refuses
// every later call, nothing of the batch may be acknowledged, and only opening
// the log again, with a read of what the disk really holds, makes it usable.
type Log interface {
	// Space says whether a batch that writes frames data frames with bytes of
	// payload in all (or, with frames 0, one state frame) can be written now. It
	// changes nothing and must be cheap.
	Space(frames, bytes int) Space

	// SaveState writes st as one state frame whose log end is end: the write
	// LSN, or below it, which is the truncation to end. Everything written
	// before was synced. It takes effect for readers after Sync.
	SaveState(st *wal.State, end wal.LSN) error

	// Append writes chunks, contiguous from the write LSN, as data frames of
	// term, with one write call. commit is stored in the frames as what was
	// known to be committed. The data is not retained. With seal the batch ends
	// this segment: a seal frame goes with the same write and the next batch
	// begins the successor; Space has said SpaceNext.
	Append(term wal.Term, commit wal.LSN, chunks []wal.Chunk, seal bool) error

	// Seal ends the open segment with nothing but a seal frame. It is followed by Sync.
	Seal() error

	// Sync makes everything written so far durable with exactly one fdatasync.
	Sync() error
}

// Space is an answer of Log.Space.
type Space = wal.Space

// The answers; see wal.Space.
const (
	SpaceOpen = wal.SpaceOpen
	SpaceNext = wal.SpaceNext
	SpaceWait = wal.SpaceWait
	SpaceNone = wal.SpaceNone
)
