// Package flush is the drain loop: it takes every message that is waiting,
// steps each through the acceptor's state machine, writes what came of it,
// makes it durable with one fdatasync for the whole batch, and answers.
//
// A [Loop] belongs to one timeline. Each proposer's stream has a [Lane], by
// which its receiver copies WAL into the loop's inbox, once. [Loop.Turn] is the
// whole of the work: it never blocks, reads no clock of its own and starts
// nothing, so a simulator calls it one event at a time. [Loop.Run] is the
// goroutine around it, and [Janitor] the one slow clock of a node, which keeps
// timers out of every batch.
package flush
