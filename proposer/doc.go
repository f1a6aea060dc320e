// Package proposer is the client library of Holdfast: it appends bytes to a
// timeline's log and says when a majority of its acceptors has made them durable.
//
//	p, err := proposer.Open(ctx, proposer.Config{
//		Acceptors: []string{"a:7070", "b:7070", "c:7070"},
//		Timeline:  wal.TimelineID{Tenant: "prod", Timeline: "main"},
//	})
//	begin, end, err := p.Append(ctx, data) // placed, not yet safe
//	err = p.Wait(ctx, end)                 // safe: a majority has flushed it
//
// A [Proposer] is the only writer of its timeline. Open wins an election and
// thereby takes the log from whoever wrote before; when another one takes it
// in turn, the proposer stops for good with a [FencedError].
//
// # How the bytes flow
//
// Append copies into the window, one run of memory shared by all acceptors,
// and wakes their senders. A sender cuts what is waiting into one
// AppendRequest, as late as it can, so that requests grow with the load by
// themselves. The cut is encoded and checksummed once and the same buffers go
// out on every stream that is in step; one that is not cuts for itself. An
// acknowledgement moves the commit LSN, which wakes the waiters in the order of
// their LSNs, and frees the window.
//
// No acceptor delays another: bytes that are committed leave the window when it
// is full, and an acceptor that still lacks them is filled from another
// acceptor's disk.
//
// [Reader] reads committed bytes and goes on with another acceptor when one fails.
package proposer
