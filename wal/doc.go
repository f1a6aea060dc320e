// Package wal is the vocabulary of Holdfast: positions in a log, terms, the
// history of terms, and the state an acceptor keeps of one timeline. Every
// other package may import it and it imports only the standard library. It
// does no I/O and starts no goroutine; every type is a plain value.
//
// A timeline's log is one axis of bytes. An [LSN] is a position on it, a
// [Term] says which election's proposer wrote there, and a [History] maps the
// axis to terms. Two logs that agree on the term of a byte agree on every byte
// before it; [Divergence] finds where two logs stop agreeing.
package wal
