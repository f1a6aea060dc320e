// Package crashimage pulls the plug. A real acceptor process works on ext4 on a
// disk that records every write and flush (package blockdev), under a proposer
// that appends, elects, truncates, trims and kills the process (script.go) and
// writes down each promise the acceptor makes, at the moment it is received
// (book.go). Then images are made of what such a disk may hold if the power
// had failed at any moment: writes that were not flushed are dropped, kept, or
// torn at 512 bytes (plug.go). Each is mounted, opened with the production code
// and held against what had been promised by then (audit.go):
//
//   - every acknowledged byte is there, and no byte that nobody sent;
//   - the term never went back, a vote given is still given, no election undone;
//   - commit and horizon, as far as they had been saved, never went back;
//   - the acceptor goes on: it votes, stores and acknowledges.
//
// It needs root, FUSE and loop devices; see blockdev.Available.
package crashimage
