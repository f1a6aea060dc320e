// Package pgcluster makes throw-away PostgreSQL clusters from the programs that
// are installed: for tests, and for "holdfast demo --postgres". A server
// listens on loopback only, runs as an unprivileged user, is ended by its
// recorded process id, and ends by itself when the program that started it does.
package pgcluster
