// Package fleet runs acceptors as child processes on loopback: it starts,
// kills, stops, pauses and restarts them and collects their logs. The demo, the
// tests that kill things, and the benchmarks use it.
//
// It knows a child by its command line and its HTTP port, not by what it does.
// No child outlives its parent: each holds the read end of a pipe as its
// standard input and leaves when the other end is gone.
package fleet
