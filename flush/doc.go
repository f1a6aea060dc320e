// Package flush is the drain loop: it takes every message that is waiting,
// steps each through the acceptor's state machine, writes what came of it,
// makes it durable with one fdatasync for the whole batch, and answers.
package flush
