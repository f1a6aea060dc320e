// Package ingest takes the WAL of an unmodified PostgreSQL into a Holdfast log,
// so that a COMMIT there returns when a majority of acceptors has flushed it.
//
// A [Bridge] is a physical replication client. It attaches, streams until
// something breaks, and attaches again. Every attachment goes the same way,
// whatever happened before: connect and ask the server who it is, win an
// election, judge by the log that the election found whether this server may
// go on writing it ([pgwal.Judge]), compare the bytes that both have, and only
// then adopt the term. So a restarted bridge, a restarted primary, a promoted
// standby and a clone are all told apart in one place, before anything changes.
//
// What is reported to PostgreSQL as flushed is the log's commit position, and
// nothing before it is known: 0 means unknown, never everything.
package ingest
