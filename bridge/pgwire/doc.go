// Package pgwire speaks the part of PostgreSQL's frontend/backend protocol
// that physical replication adds inside CopyData, and parses the replication
// commands. One message has one file, encode beside decode, and every decoder
// takes any bytes: it returns an error, never panics, and allocates nothing
// that the sender chooses the size of.
//
// The rest of the protocol (startup, authentication, rows, errors) is pgx's:
// package pgconn dials PostgreSQL, pgproto3.Backend faces its clients. What is
// here is what carries WAL, so a steady stream costs no allocation per message.
package pgwire
