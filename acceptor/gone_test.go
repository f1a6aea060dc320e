package acceptor

import (
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"google.golang.org/grpc"
)

// deaf is a stream whose other side is gone: what is sent goes nowhere.
type deaf struct{ grpc.ServerStream }

func (deaf) SendMsg(any) error { return nil }

// TestAProposerThatIsGoneIsNotShown: one that hung up before its greeting was
// answered was shown as connected for as long as nobody else came.
func TestAProposerThatIsGoneIsNotShown(t *testing.T) {
	for _, goneFirst := range []bool{false, true} {
		r := &replica{}
		x := &appendStream{stream: deaf{}, replica: r}
		answer := func() {
			if err := x.Send(&consensus.AcceptorGreeting{}); err != nil {
				t.Fatal(err)
			}
		}
		if goneFirst {
			x.leave()
			answer()
		} else {
			answer()
			if r.proposer.Load() != &x.contact {
				t.Error("one that is connected is not shown")
			}
			x.leave()
		}
		if r.proposer.Load() != nil {
			t.Errorf("gone before its greeting was answered: %v; it is still shown", goneFirst)
		}
	}
}
