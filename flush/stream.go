package flush

import "github.com/seed7f3f3bb8/holdfast/consensus"

// Stream is the answering side of one proposer's stream. The loop's goroutine
// calls it.
type Stream interface {
	// Send sends one message. It may wait while the other side does not read;
	// the janitor calls Cancel on a stream that makes the loop wait for too
	// long. m is valid until Send returns. An error means that the stream is gone.
	Send(m consensus.Message) error

	// End ends the stream with err. It is called at most once, must not wait,
	// and nothing is sent afterwards. It makes the receiver close its lane.
	End(err *consensus.Error)

	// Cancel breaks the stream off from another goroutine, so that a Send that
	// waits returns an error. It must not wait.
	Cancel()
}
