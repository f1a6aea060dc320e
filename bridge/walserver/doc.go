// Package walserver serves a log to stock PostgreSQL standbys and
// pg_receivewal, as a primary would: startup, TLS, SCRAM-SHA-256, the physical
// replication commands, slots, keepalives, and the change from one TLI to the next.
//
// Only committed WAL is sent: a standby must never hold what an election may
// still give up. Which TLI a byte belongs to is asked anew whenever the bytes
// come from a newer term, because a TLI can change only with a term.
//
// Slots are remembered, so that clients that insist on one are content, but
// they hold nothing back: how long WAL is kept is the acceptors' business
// (--retain-bytes).
package walserver
