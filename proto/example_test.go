package proto_test

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
)

// What ended a stream comes back as the error that the acceptor's rules gave.
func ExampleFromStatus() {
	sent := &consensus.Error{Reason: consensus.ReasonGap, Term: 7, Expected: 0x704E0C8, Detail: "the append begins at 0/7050000"}
	received := proto.Status(sent).Err() // over the wire

	if e := proto.FromStatus(received); e != nil && e.Reason == consensus.ReasonGap {
		fmt.Println("term", e.Term, "expects", e.Expected)
	}
	// Output: term 7 expects 0/704E0C8
}
