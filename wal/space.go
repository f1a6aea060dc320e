package wal

// Space is a log's answer to the question whether a batch can be written now.
// It lives here because the loop asks and the storage answers, and neither
// may import the other.
type Space uint8

const (
	// SpaceOpen: it fits into the open segment (or into the one that the first write after opening takes).
	SpaceOpen Space = iota
	// SpaceNext: it does not fit into the open segment; seal that one, the successor is ready.
	SpaceNext
	// SpaceWait: it does not fit and the successor is still being prepared.
	SpaceWait
	// SpaceNone: it does not fit and no successor can be prepared: the disk is
	// full. Appends are refused before the state machine sees them.
	SpaceNone
)
