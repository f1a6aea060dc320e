// Package blockdev is a disk made for testing: a block device whose every
// write and flush is remembered, delayed or made to fail at will. It is a file
// served through FUSE from memory with a loop device on top, so a real file
// system can live on it and a real process on that.
//
// What was recorded ([Disk.Record], [Disk.Stop]) can be played back into what the
// platters may hold if the power had failed at any moment ([History], [Player]):
// everything flushed is there, and each write that was not flushed is there, or
// not, or in part, sector by sector.
//
// It needs root, /dev/fuse and loop devices; [Available] tells. Everything
// taken from the machine is in a ledger (package leftovers) first, so nothing
// stays behind a process that is killed.
package blockdev
