// Package admin is what a client asks of all the acceptors of a timeline at
// once: create it, list, look at, trim, scrub, mend and delete it, and read its
// bytes from one acceptor's own disk.
//
// It works when nobody can write. Every answer is one node's own, and a node
// that does not answer is shown as that: unknown is a value ([Answer]). What
// came over the wire has been checked when it comes out of here.
package admin
