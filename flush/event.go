package flush

import (
	"errors"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// ErrNoSpace is what an event that must write learns when the disk is full.
var ErrNoSpace = errors.New("no space is left, not even for a state frame")

// ErrUnhealthy is what an event that writes learns from a copy that is poisoned or damaged.
var ErrUnhealthy = errors.New("the copy is poisoned or damaged and takes no writes")

// Event is something that the node itself, and not a proposer, asks of a
// timeline. It takes its place in the queue and has a turn to itself.
type Event struct {
	// Step, if set, adds effects to an empty batch. It runs on the loop's
	// goroutine and must not wait. Effects that write are only allowed with Saves.
	Step func(a *consensus.Acceptor, b *consensus.Batch)

	// Write, if set, takes the place of the batch's own writing: it makes
	// something of the log durable, st being what is to be remembered now. Its
	// error poisons the log. It is called only while the copy is healthy; if
	// it is not, Done learns ErrUnhealthy.
	Write func(st *wal.State) error

	// Saves says that a state frame may be written. There is room for one
	// when the event's turn comes.
	Saves bool

	// Done, if set, is called once: with nil when the effects are durable, or
	// with the reason why they are not. It runs on the loop's goroutine and
	// must not wait.
	Done func(error)
}

func (e *Event) done(err error) {
	if e.Done != nil {
		e.Done(err)
	}
}

// Quiet is the event that proves the last data frames and saves commit and
// horizon, if the newest state frame does not say all that already.
func Quiet(done func(error)) Event {
	return Event{Step: func(a *consensus.Acceptor, b *consensus.Batch) { a.Quiet(b) }, Saves: true, Done: done}
}

// PeerCommit is the event that a peer told what it knows to be committed.
func PeerCommit(c *consensus.PeerCommit) Event {
	return Event{Step: func(a *consensus.Acceptor, b *consensus.Batch) { a.Step(0, c, b) }}
}

// Quarantine is the event that damage was found.
func Quarantine() Event {
	return Event{Step: func(a *consensus.Acceptor, b *consensus.Batch) { a.Quarantine(b) }}
}
