package proposer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds whatever a test waits for. It is never reached when all is well.
const patience = 20 * time.Second

func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, c proposer.Config) *proposer.Proposer {
	t.Helper()
	p, err := proposer.Open(patient(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// commit appends data and waits until it is committed.
func commit(t testing.TB, p *proposer.Proposer, data []byte) {
	t.Helper()
	_, end, err := p.Append(patient(t), data)
	if err == nil {
		err = p.Wait(patient(t), end)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain waited for: %s", what)
		}
	}
}

// written is n bytes that differ from place to place.
func written(n int, seed uint64) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1}).Read(b)
	return b
}

func TestAppendsOfAllSizesAreCommittedAsTheyWere(t *testing.T) {
	c := newCluster(t, 3)
	cfg := c.config()
	cfg.WindowBytes = 256 << 10 // smaller than some of what follows
	p := open(t, cfg)
	if p.Tail() != fakeFirst || p.Commit() != fakeFirst {
		t.Fatalf("tail %v, commit %v, expected %v", p.Tail(), p.Commit(), fakeFirst)
	}
	var want []byte
	for i, n := range []int{0, 1, 2, 100, 8 << 10, 8<<10 + 1, 64 << 10, 100_000, 1 << 20, 3<<20 + 17, 1} {
		data := written(n, uint64(i))
		begin, end, err := p.Append(patient(t), data)
		if err != nil || begin != fakeFirst+wal.LSN(len(want)) || end != begin+wal.LSN(n) {
			t.Fatalf("append of %d bytes: [%v, %v), %v", n, begin, end, err)
		}
		want = append(want, data...)
		clear(data) // it is the caller's again
	}
	if err := p.Wait(patient(t), p.Tail()); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		eventually(t, "every log is complete", func() bool { return bytes.Equal(n.bytes(), want) })
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		if got := n.status().Commit; got != p.Tail() {
			t.Errorf("after Close node %d knows commit %v, expected %v", n.id, got, p.Tail())
		}
	}
}

func TestManyAppenders(t *testing.T) {
	c := newCluster(t, 3)
	cfg := c.config()
	cfg.WindowBytes = 64 << 10
	p := open(t, cfg)
	var wg sync.WaitGroup
	var mu sync.Mutex
	placed := map[wal.LSN][]byte{}
	for i := range 32 {
		wg.Go(func() {
			for j := range 50 {
				data := written(1+(i*j*37)%5000, uint64(i*1000+j))
				begin, end, err := p.Append(context.Background(), data)
				if err == nil {
					err = p.Wait(context.Background(), end)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if p.Commit() < end {
					t.Errorf("Wait(%v) returned at commit %v", end, p.Commit())
				}
				mu.Lock()
				placed[begin] = data
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, n := range c.nodes {
		eventually(t, "every log is complete", func() bool { return n.status().Flush == p.Tail() })
		log := n.bytes()
		for begin, data := range placed {
			if at := begin - fakeFirst; !bytes.Equal(log[at:][:len(data)], data) {
				t.Fatalf("the %d bytes at %v are not what was appended", len(data), begin)
			}
		}
	}
}

func TestSingleAcceptor(t *testing.T) {
	c := newCluster(t, 1)
	p := open(t, c.config())
	commit(t, p, []byte("one"))
}

func TestOneIsDownAndComesBack(t *testing.T) {
	c := newCluster(t, 3)
	c.nodes[2].stop()
	p := open(t, c.config())
	var want []byte
	for i := range 20 {
		data := written(1000, uint64(i))
		commit(t, p, data)
		want = append(want, data...)
	}
	c.nodes[2].start()
	eventually(t, "the third catches up", func() bool { return bytes.Equal(c.nodes[2].bytes(), want) })
}

func TestTwoDownThenBack(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	commit(t, p, []byte("before"))
	c.nodes[0].stop()
	c.nodes[2].stop()
	_, end, err := p.Append(patient(t), []byte("between"))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := p.Wait(short, end); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("without a quorum Wait returned %v", err)
	}
	c.nodes[0].start()
	if err := p.Wait(patient(t), end); err != nil {
		t.Fatal(err)
	}
	c.nodes[2].start()
	for _, n := range c.nodes {
		eventually(t, "all logs are complete", func() bool { return string(n.bytes()) == "beforebetween" })
	}
}

func TestSecondProposerTakesOver(t *testing.T) {
	c := newCluster(t, 3)
	first := open(t, c.config())
	commit(t, first, []byte("first"))
	second := open(t, c.config())
	commit(t, second, []byte("second"))
	select {
	case <-first.Done():
	case <-time.After(patience):
		t.Fatal("the first proposer goes on")
	}
	var fenced *proposer.FencedError
	if err := first.Err(); !errors.As(err, &fenced) || fenced.Term != second.Status().Term {
		t.Fatalf("it stopped with %v, expected the winning term %d", err, second.Status().Term)
	}
	if _, _, err := first.Append(patient(t), []byte("x")); !errors.As(err, &fenced) {
		t.Errorf("Append after that: %v", err)
	}
	if err := first.Wait(patient(t), first.Commit()); err != nil {
		t.Errorf("Wait for what is committed: %v", err)
	}
	if err := first.Wait(patient(t), first.Tail()+1); !errors.As(err, &fenced) {
		t.Errorf("Wait beyond the tail: %v", err)
	}
	commit(t, second, []byte("third"))
	for _, n := range c.nodes {
		eventually(t, "all logs are the second's", func() bool { return string(n.bytes()) == "firstsecondthird" })
	}
}

func TestOutcomeUnknown(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	c.nodes[1].stop()
	c.nodes[2].stop()
	_, end, err := p.Append(patient(t), []byte("perhaps"))
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() { result <- p.Wait(context.Background(), end) }()
	p.Close()
	var unknown *proposer.OutcomeUnknownError
	if err := <-result; !errors.As(err, &unknown) || unknown.LSN != end || !errors.Is(err, proposer.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	if p.Close() != nil || p.Err() != proposer.ErrClosed {
		t.Errorf("the second Close: %v", p.Err())
	}
}

func TestOpenFails(t *testing.T) {
	c := newCluster(t, 3)
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	for _, n := range c.nodes {
		n.set(func(n *node) { n.missing = true })
	}
	if _, err := proposer.Open(patient(t), c.config()); !errors.Is(err, proposer.ErrNotFound) {
		t.Errorf("nobody has the timeline: %v", err)
	}
	c.nodes[0].set(func(n *node) { n.missing = false })
	if _, err := proposer.Open(short(), c.config()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one of three has the timeline: %v", err)
	}
	for _, cfg := range []func(*proposer.Config){
		func(c *proposer.Config) { c.Acceptors = nil },
		func(c *proposer.Config) { c.Timeline.Tenant = "../x" },
		func(c *proposer.Config) { c.WindowBytes = 5 },
		func(c *proposer.Config) { c.RequestBytesMax = wal.RequestBytesMax + 1 },
		func(c *proposer.Config) { c.Properties = make([]byte, wal.PropertiesBytesMax+1) },
	} {
		bad := c.config()
		cfg(&bad)
		if _, err := proposer.Open(patient(t), bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestMembersAreFoundFromOneAddress(t *testing.T) {
	c := newCluster(t, 3)
	cfg := c.config()
	cfg.Acceptors = cfg.Acceptors[1:2]
	p := open(t, cfg)
	if got := fmt.Sprint(len(p.Peers())); got != "3" {
		t.Errorf("%s members", got)
	}
	commit(t, p, []byte("x"))
}
