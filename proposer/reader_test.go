package proposer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/proto"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func newReader(t *testing.T, c *cluster, change func(*proposer.ReaderConfig)) *proposer.Reader {
	t.Helper()
	w := c.config()
	cfg := proposer.ReaderConfig{Acceptors: w.Acceptors, Timeline: w.Timeline, DialOptions: w.DialOptions, Begin: fakeFirst}
	if change != nil {
		change(&cfg)
	}
	r, err := proposer.NewReader(patient(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// readN reads until n bytes have come, or the end.
func readN(t *testing.T, r *proposer.Reader, n int) []byte {
	t.Helper()
	var got []byte
	for len(got) < n {
		chunk, err := r.Next(patient(t))
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Begin != fakeFirst+wal.LSN(len(got)) && r.Position() != chunk.End() {
			t.Fatalf("got [%v, %v) at position %v", chunk.Begin, chunk.End(), r.Position())
		}
		got = append(got, chunk.Data...)
	}
	return got
}

const everything = 1 << 40

func TestReaderReadsWhatIsCommitted(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	want := written(500_000, 1)
	commit(t, p, want)
	p.Close()
	if got := readN(t, newReader(t, c, nil), everything); !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, expected the %d that were written", len(got), len(want))
	}
	part := newReader(t, c, func(c *proposer.ReaderConfig) { c.Begin += 1000; c.End = c.Begin + 300_000 })
	if got := readN(t, part, everything); !bytes.Equal(got, want[1000:301_000]) {
		t.Errorf("a part: read %d bytes", len(got))
	}
	for range 2 {
		if err := part.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := part.Next(patient(t)); err != proposer.ErrClosed {
		t.Errorf("after Close: %v", err)
	}
}

func TestReaderFollowsAndGoesOnElsewhere(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	r := newReader(t, c, func(c *proposer.ReaderConfig) { c.Follow = true })
	short, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("nothing is written yet: %v", err)
	}
	for i := range 6 {
		data := written(150_000, uint64(i))
		commit(t, p, data)
		if got := readN(t, r, len(data)); !bytes.Equal(got, data) {
			t.Fatalf("round %d: read %d bytes, expected the %d written", i, len(got), len(data))
		}
		// Whoever serves now: kill it.
		n := c.nodes[i%3]
		n.stop()
		n.start()
		eventually(t, "it is back", func() bool { return n.status().Flush == p.Tail() && p.Peers()[i%3].Adopted })
	}
	if r.Position() != p.Tail() {
		t.Errorf("position %v, tail %v", r.Position(), p.Tail())
	}
}

func TestReaderGoesRoundDamage(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	want := written(1000, 1)
	commit(t, p, want)
	p.Close()
	c.nodes[0].set(func(n *node) { n.rotten = true })
	c.nodes[1].set(func(n *node) { n.rotten = true })
	if got := readN(t, newReader(t, c, nil), everything); !bytes.Equal(got, want) {
		t.Errorf("read %d bytes", len(got))
	}
	c.nodes[2].set(func(n *node) { n.rotten = true })
	_, err := newReader(t, c, nil).Next(patient(t))
	var e *consensus.Error
	if !errors.As(err, &e) || e.Reason != proto.ReasonCorrupt {
		t.Errorf("damaged everywhere: %v", err)
	}
}

func TestReaderPinnedToATerm(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	want := written(1000, 1)
	commit(t, p, want)
	term, end := p.Status().Term, p.Tail()
	pinned := func(term wal.Term) *proposer.Reader {
		return newReader(t, c, func(c *proposer.ReaderConfig) { c.PinnedTerm, c.End = term, end })
	}
	if got := readN(t, pinned(term), everything); !bytes.Equal(got, want) {
		t.Errorf("read %d bytes", len(got))
	}
	_, err := pinned(term + 1).Next(patient(t))
	var e *consensus.Error
	if !errors.As(err, &e) || e.Reason != proto.ReasonPinnedTerm {
		t.Errorf("a term that nobody has: %v", err)
	}
}
