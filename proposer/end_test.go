package proposer_test

import (
	"errors"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestPositionsEnd: an append that would wrap around the LSN space once looked
// as if it were committed already, and was acknowledged although no acceptor
// could take it.
func TestPositionsEnd(t *testing.T) {
	c := newRealCluster(t)
	const left = 700_000
	c.Timeline.Timeline = "end"
	if _, _, err := c.admin.Create(patient(t), admin.Creation{Timeline: c.Timeline, First: wal.LSNMax - left}); err != nil {
		t.Fatal(err)
	}
	c.WindowBytes = 256 << 10 // what does not fit into it goes another way
	p := open(t, c.Config)
	for _, n := range []int{left + 1, left + 400_000, proposer.AppendBytesMax} {
		if begin, end, err := p.Append(patient(t), make([]byte, n)); !errors.Is(err, proposer.ErrLogEnds) || begin != end {
			t.Fatalf("%d bytes where %d positions are left: [%v, %v), %v", n, left, begin, end, err)
		}
	}
	commit(t, p, written(100_000, 1))
	commit(t, p, written(left-100_000-1, 2))
	if _, _, err := p.Append(patient(t), []byte("ab")); !errors.Is(err, proposer.ErrLogEnds) {
		t.Fatalf("two bytes where one position is left: %v", err)
	}
	commit(t, p, []byte("a"))
	if _, _, err := p.Append(patient(t), []byte("b")); !errors.Is(err, proposer.ErrLogEnds) || p.Commit() != wal.LSNMax {
		t.Fatalf("behind the last position: %v, commit %v", err, p.Commit())
	}
}

func TestAppendHasALimit(t *testing.T) {
	p := open(t, newCluster(t, 1).config())
	begin, end, err := p.Append(patient(t), make([]byte, proposer.AppendBytesMax+1))
	if !errors.Is(err, proposer.ErrTooLarge) || begin != end || p.Tail() != fakeFirst {
		t.Errorf("[%v, %v), %v", begin, end, err)
	}
}
