// Package acceptor is a node: the gRPC services, and the timelines in one data
// directory behind them. It has no rules of its own. Who may vote, write and
// truncate is decided in package consensus, what is durable in package storage,
// and when they are asked in package flush.
//
// The way of an append: a receiver goroutine reads the stream and copies the
// WAL into the lane of its timeline's loop (stream.go); the loop's goroutine
// writes, syncs and sends the answer. Everything that may take its time, making
// segments ahead (preparer.go), opening logs again after a disk error, closing
// idle ones, retention (keeper.go), asking peers what is committed (gossip.go),
// happens beside it.
//
// A timeline is cold until someone uses it: then it costs one small struct.
// Opened, it has a log and a loop, together a replica (replica.go), and only
// while it works a goroutine and descriptors.
//
//	<data-dir>/node.id                 who this directory belongs to
//	<data-dir>/LOCK                    held while a process uses it
//	<data-dir>/spare.d/                segments for a full disk
//	<data-dir>/<tenant>/<timeline>/    segments, and what is known of damage
//	<data-dir>/<tenant>/<timeline>.filled/       a lost copy, filled for reading
//	<data-dir>/<tenant>/<timeline>.quarantined/  one that was replaced; for people
package acceptor
