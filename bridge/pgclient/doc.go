// Package pgclient is a physical replication client of an unmodified
// PostgreSQL: it dials with pgconn (so every libpq-style connection string,
// password file, TLS mode and SCRAM works), asks what a replication client may
// ask, and receives WAL without allocating per message.
//
// PostgreSQL's errors are turned into [Problem]: what is wrong, whether waiting
// can help, and what to do.
package pgclient
