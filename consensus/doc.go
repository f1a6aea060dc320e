// Package consensus holds the rules of Holdfast's protocol as two pure state
// machines: [Acceptor], which votes, stores and acknowledges, and [Proposer],
// which wins a term and decides what is committed. Both take one event at a
// time and describe what is to be done; the caller performs it. There is no
// goroutine, lock, clock, log line, I/O or map iteration here, so a simulator
// and an exhaustive checker run exactly the code that production runs.
//
// # The acceptor's turn
//
// The caller (package flush) gives messages to [Acceptor.Step], which gathers
// their effects in one [Batch]. It then performs the batch in this order:
//
//  1. save Batch.Save, if any, as a state frame; append Batch.Appends;
//  2. make all of it durable with one sync;
//  3. tell the machine with [Acceptor.Flushed], which fills Batch.Replies;
//  4. send the replies and end the streams in Batch.Ends.
//
// If step 1 or 2 fails the caller calls [Acceptor.Fail] instead: the machine
// is poisoned for good and only a new one, made from what is read back from
// disk, may vote and acknowledge again.
//
// Control messages travel alone. Step refuses to add one to a batch that
// already has effects and to add anything to a batch that holds one; it then
// returns false, and the caller performs the batch before it tries again. So
// every reply speaks of bytes that were durable before the message was looked at.
//
// # Rules
//
// The rules are numbered A1 to A9 and P1 to P7 in docs/protocol.md and named
// at the code that keeps them.
package consensus
