// Package storage keeps one timeline's log on disk: WAL bytes and the
// acceptor's state in one sequence of frames, in segment files, with one write
// path and one fdatasync per batch. docs/format.md draws the bytes and gives
// the reasons; this is the map of the code.
//
// A [Log] has one writing goroutine, which calls Space, SaveState, Append,
// Seal, Sync and Trim (and Idle and Close); a background goroutine, which
// calls Prepare and Reclaim so that the writer never has to create, extend or
// rename a file; and any number of readers, each with a [Reader] of its own.
// Nothing here starts a goroutine or looks at a clock.
//
//	format.go, stateframe.go   the bytes of segment headers, frames and states
//	write.go                   a batch on its way to the file
//	recover.go, replay.go      what a log is after a crash, and what is damage
//	segment.go                 which segment holds which positions
//	prepare.go, spare.go       the next segment, ahead of time
//	trim.go                    letting go of the oldest end
//	cursor.go, reader.go       walking frames; reading by position
//	scrub.go, inspect.go       verifying everything; looking without touching
//	record.go                  damage that was found is not forgotten
//	create.go, rebuild.go      whole directories: there complete, or absent
//
// The first failed write or sync poisons a Log: every later call is refused
// with a [PoisonedError] and only opening the directory again, with a read of
// what the disk really holds, makes it usable. Damage never shortens a log: it is
// reported with its range ([CorruptionError], [DamageError]) and what is left is still served.
package storage
