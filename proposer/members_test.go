package proposer_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/goleak"
)

// A member that hangs holds nobody up, its backlog does not grow memory, and
// it is filled from another one's disk afterwards.
func TestHungMemberIsRefilled(t *testing.T) {
	c := newCluster(t, 3)
	cfg := c.config()
	cfg.WindowBytes = 256 << 10
	cfg.RefillBytesPerSecond = -1
	p := open(t, cfg)
	hung := c.nodes[2]
	eventually(t, "it is known where its log ends", func() bool { return p.Peers()[2].Flush == fakeFirst })
	hung.set(func(n *node) { n.hung = true })
	var want []byte
	for i := range 16 {
		data := written(256<<10, uint64(i))
		commit(t, p, data)
		want = append(want, data...)
		st := p.Status()
		if held := int(st.Tail - st.WindowBegin); held > cfg.WindowBytes {
			t.Fatalf("%d bytes are held, the window has %d", held, cfg.WindowBytes)
		}
	}
	if lag := p.Peers()[2].LagBytes; lag != 4<<20 {
		t.Errorf("lag %d, expected %d", lag, 4<<20)
	}
	hung.set(func(n *node) { n.hung = false })
	eventually(t, "it has caught up", func() bool { return bytes.Equal(hung.bytes(), want) })
	var served uint64
	for _, n := range c.nodes {
		n.mu.Lock()
		served += n.readBytes
		n.mu.Unlock()
	}
	if served < 3<<20 {
		t.Errorf("%d bytes came from another disk", served)
	}
	commit(t, p, []byte("and on"))
	eventually(t, "it is fed from memory again", func() bool { return bytes.Equal(hung.bytes(), append(want, "and on"...)) })
}

// One that was away longer than the window holds comes back while appends go on.
func TestRefillWhileAppending(t *testing.T) {
	c := newCluster(t, 3)
	cfg := c.config()
	cfg.WindowBytes = 256 << 10
	p := open(t, cfg)
	var want []byte
	add := func(n int) {
		data := written(n, uint64(len(want)))
		commit(t, p, data)
		want = append(want, data...)
	}
	add(1000)
	c.nodes[0].stop()
	for range 20 {
		add(64 << 10)
	}
	c.nodes[0].start()
	for range 50 {
		add(16 << 10)
	}
	for _, n := range c.nodes {
		eventually(t, "all logs are equal", func() bool { return bytes.Equal(n.bytes(), want) })
	}
}

func TestRefillGoesRoundADamagedSource(t *testing.T) {
	c := newCluster(t, 3)
	cfg := c.config()
	cfg.WindowBytes = 64 << 10
	p := open(t, cfg)
	c.nodes[2].stop()
	want := written(1<<20, 1)
	commit(t, p, want)
	c.nodes[0].set(func(n *node) { n.rotten = true })
	c.nodes[2].start()
	eventually(t, "the third is filled from the second", func() bool { return bytes.Equal(c.nodes[2].bytes(), want) })
}

func TestRefillShowsHowItGetsOn(t *testing.T) {
	c := newCluster(t, 3)
	cfg := c.config()
	cfg.WindowBytes = 64 << 10
	cfg.RefillBytesPerSecond = 4 << 20
	p := open(t, cfg)
	c.nodes[1].stop()
	want := written(3<<20, 1)
	commit(t, p, want)
	c.nodes[1].start()
	eventually(t, "a refill with an estimate is shown", func() bool {
		r := p.Peers()[1].Refill
		return r != nil && r.Source != 2 && r.At > r.Begin && r.At < r.End && r.ETA > 0 && r.BytesPerSecond > 0
	})
	eventually(t, "it ends", func() bool { return p.Peers()[1].Refill == nil && bytes.Equal(c.nodes[1].bytes(), want) })
}

// A new proposer begins with a lagging and a longer log: the donor's bytes
// come from the donor's disk.
func TestRecoveryFromADonor(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	c.nodes[0].stop()
	want := written(2<<20, 1)
	commit(t, p, want)
	p.Close()
	c.nodes[0].start()
	c.nodes[1].stop() // one of two that have it all
	p = open(t, c.config())
	if p.Tail() != fakeFirst+wal.LSN(len(want)) {
		t.Fatalf("the log ends at %v", p.Tail())
	}
	commit(t, p, []byte("next"))
	c.nodes[1].start()
	for _, n := range c.nodes {
		eventually(t, "all logs are equal", func() bool { return bytes.Equal(n.bytes(), append(want, "next"...)) })
	}
}

func TestFullWindowBlocksAndGoesOn(t *testing.T) {
	c := newCluster(t, 3)
	cfg := c.config()
	cfg.WindowBytes = 64 << 10
	p := open(t, cfg)
	c.nodes[0].set(func(n *node) { n.hung = true })
	c.nodes[1].set(func(n *node) { n.hung = true })
	piece := written(16<<10, 1)
	var want []byte
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		begin, end, err := p.Append(ctx, piece)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			if begin != end {
				t.Errorf("an append that does not fit placed [%v, %v)", begin, end)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if want = append(want, piece...); len(want) > cfg.WindowBytes {
			t.Fatalf("%d bytes were placed in a window of %d", len(want), cfg.WindowBytes)
		}
	}
	var waiting sync.WaitGroup
	for range 8 {
		waiting.Go(func() {
			_, end, err := p.Append(context.Background(), piece)
			if err == nil {
				err = p.Wait(context.Background(), end)
			}
			if err != nil {
				t.Error(err)
			}
		})
		want = append(want, piece...)
	}
	c.nodes[0].set(func(n *node) { n.hung = false })
	waiting.Wait()
	c.nodes[1].set(func(n *node) { n.hung = false })
	eventually(t, "all is there", func() bool { return bytes.Equal(c.nodes[1].bytes(), want) })
}

func TestNoSpaceIsWaitedOut(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	commit(t, p, []byte("a"))
	c.nodes[0].set(func(n *node) { n.full = true })
	commit(t, p, []byte("b"))
	eventually(t, "the reason is shown", func() bool {
		var e *consensus.Error
		return errors.As(p.Peers()[0].Err, &e) && e.Reason == consensus.ReasonNoSpace
	})
	c.nodes[0].set(func(n *node) { n.full = false })
	eventually(t, "it has caught up", func() bool { return string(c.nodes[0].bytes()) == "ab" && p.Peers()[0].Err == nil })
}

func TestUnhealthyMemberIsShown(t *testing.T) {
	c := newCluster(t, 3)
	c.nodes[1].stop()
	c.nodes[1].health = wal.Poisoned
	c.nodes[1].start()
	p := open(t, c.config())
	commit(t, p, []byte("a"))
	eventually(t, "the reason is shown", func() bool {
		err := p.Peers()[1].Err
		return err != nil && strings.Contains(err.Error(), "poisoned")
	})
}

// A deleted and created log is another one: its old proposer is not wanted anywhere.
func TestRefusedByAMajority(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	commit(t, p, []byte("a"))
	for _, n := range c.nodes[:2] {
		n.stop()
		n.state.Creation = wal.CreationID{9}
		n.start()
	}
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatal("the proposer goes on")
	}
	var refused *proposer.RefusedError
	if err := p.Err(); !errors.As(err, &refused) || len(refused.Members) != 2 {
		t.Errorf("stopped with %v", err)
	}
}

func TestMemberWithSmallLimits(t *testing.T) {
	c := newCluster(t, 3)
	for _, n := range c.nodes[:2] {
		n.stop()
		n.requestBytesMax, n.windowBytes = 1000*int(n.id), 4000
		n.start()
	}
	p := open(t, c.config())
	want := written(300_000, 1)
	commit(t, p, want)
	for _, n := range c.nodes {
		eventually(t, "all logs are equal", func() bool { return bytes.Equal(n.bytes(), want) })
	}
}

// An acceptor merely voted for someone: the proposer campaigns again and goes
// on with what its window holds (P6).
func TestVoteForAnotherDoesNotStopTheWriter(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	var want []byte
	term := p.Status().Term
	for round := range 3 {
		for i := range 20 {
			data := written(5000, uint64(100*round+i))
			if _, _, err := p.Append(patient(t), data); err != nil {
				t.Fatal(err)
			}
			want = append(want, data...)
			if i == 10 {
				c.nodes[round].usurp(t, p.Status().Term+1)
			}
		}
		if err := p.Wait(patient(t), p.Tail()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another term is won", func() bool {
			st := p.Status()
			return st.Term > term && st.Phase == consensus.Leading
		})
		term = p.Status().Term
	}
	if err := p.Wait(patient(t), p.Tail()); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		eventually(t, "all logs are equal", func() bool { return bytes.Equal(n.bytes(), want) })
	}
}

// usurp makes the node vote for a candidate that nobody hears of again.
func (n *node) usurp(t *testing.T, term wal.Term) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b consensus.Batch
	const stream = 1 << 60
	for _, m := range []consensus.Message{
		&consensus.Greeting{Version: consensus.Version, Timeline: n.cluster.timeline, Creation: n.state.Creation,
			Proposer: wal.ProposerID{1}, Connection: uint64(term), Membership: n.cluster.membership},
		&consensus.VoteRequest{Generation: 1, Term: term},
	} {
		b.Reset()
		n.acceptor.Step(stream, m, &b)
		if b.Save != nil {
			n.state = b.Save.Clone()
		}
		n.acceptor.Flushed(&b)
	}
	n.acceptor.Close(stream)
	if n.acceptor.Status().VotedFor != (wal.ProposerID{1}) {
		t.Error("it did not vote")
	}
}

// Everything is going on when Close comes.
func TestCloseDuringEverything(t *testing.T) {
	for round := range 5 {
		c := newCluster(t, 3)
		cfg := c.config()
		cfg.WindowBytes = 64 << 10
		p := open(t, cfg)
		tokens := make(chan struct{}, 1)
		cancel := p.Notify(tokens)
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				data := written(1+i*3000, uint64(i))
				for {
					_, end, err := p.Append(context.Background(), data)
					if err == nil {
						err = p.Wait(context.Background(), end)
					}
					if err != nil {
						if !errors.Is(err, proposer.ErrClosed) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		wg.Go(func() {
			for n := 0; ; n++ {
				x := c.nodes[n%3]
				x.stop()
				x.start()
				select {
				case <-p.Done():
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
		wg.Go(func() { <-tokens })
		wg.Go(func() {
			for p.Err() == nil {
				p.Status()
			}
		})
		time.Sleep(time.Duration(round*20) * time.Millisecond)
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() { p.Close() })
		}
		closers.Wait()
		wg.Wait()
		cancel()
		cancel()
		c.stop()
		goleak.VerifyNone(t)
	}
}

func TestNotifyMissesNothing(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	ch := make(chan struct{}, 1)
	defer p.Notify(ch)()
	for i := range 50 {
		_, end, err := p.Append(patient(t), written(100, uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		for p.Commit() < end {
			select {
			case <-ch:
			case <-time.After(patience):
				t.Fatalf("no token for %v, commit is %v", end, p.Commit())
			}
		}
	}
	p.Close()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatal("no token for the stop")
	}
}

func TestNoCoalesce(t *testing.T) {
	c := newCluster(t, 1)
	cfg := c.config()
	cfg.NoCoalesce = true
	p := open(t, cfg)
	c.nodes[0].set(func(n *node) { n.syncDelay = time.Millisecond })
	var want []byte
	for i := range 100 {
		data := written(10+i, uint64(i))
		if _, _, err := p.Append(patient(t), data); err != nil {
			t.Fatal(err)
		}
		want = append(want, data...)
	}
	if err := p.Wait(patient(t), p.Tail()); err != nil {
		t.Fatal(err)
	}
	if got := c.nodes[0].requestCount(); got != 100 || !bytes.Equal(c.nodes[0].bytes(), want) {
		t.Errorf("%d requests for 100 appends", got)
	}
}

func TestAppendsAreCoalesced(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	for _, n := range c.nodes {
		n.set(func(n *node) { n.hung = true })
	}
	for i := range 1000 {
		if _, _, err := p.Append(patient(t), written(100, uint64(i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range c.nodes {
		n.set(func(n *node) { n.hung = false })
	}
	if err := p.Wait(patient(t), p.Tail()); err != nil {
		t.Fatal(err)
	}
	if got := c.nodes[0].requestCount(); got > 200 {
		t.Errorf("%d requests for 1000 appends that waited", got)
	}
}

// Commit reaches acceptors to which no data goes any more.
func TestIdleAcceptorsHearOfTheCommit(t *testing.T) {
	c := newCluster(t, 3)
	p := open(t, c.config())
	commit(t, p, []byte("last"))
	for _, n := range c.nodes {
		eventually(t, "it knows the commit", func() bool { return n.status().Commit == p.Tail() })
	}
	eventually(t, "they know that everyone has it", func() bool {
		return c.nodes[0].status().Horizon == p.Tail() && c.nodes[1].status().Horizon == p.Tail()
	})
}

func TestDecide(t *testing.T) {
	c := newCluster(t, 3)
	cfg := c.config()
	cfg.Properties, cfg.SystemID = []byte("first"), 77
	p := open(t, cfg)
	commit(t, p, []byte("abc"))
	p.Close()

	no := errors.New("not this one")
	cfg = c.config()
	cfg.Decide = func(_ context.Context, e proposer.Election) (proposer.Decision, error) {
		if string(e.Properties) != "first" || e.SystemID != 77 || e.Start != fakeFirst+3 {
			t.Errorf("found %+v", e)
		}
		return proposer.Decision{}, no
	}
	if _, err := proposer.Open(patient(t), cfg); !errors.Is(err, no) {
		t.Errorf("Open: %v", err)
	}

	cfg.Decide = func(_ context.Context, e proposer.Election) (proposer.Decision, error) {
		return proposer.Decision{Start: e.Start, SystemID: e.SystemID, Properties: []byte("second")}, nil
	}
	p = open(t, cfg)
	commit(t, p, []byte("def"))
	eventually(t, "it is stored", func() bool {
		n := c.nodes[0]
		n.mu.Lock()
		defer n.mu.Unlock()
		return string(n.state.Properties) == "second" && n.state.SystemID == 77
	})
	p.Close()

	// A start that would give up what may be committed is refused.
	cfg.Decide = func(_ context.Context, e proposer.Election) (proposer.Decision, error) {
		return proposer.Decision{Start: fakeFirst}, nil
	}
	if _, err := proposer.Open(patient(t), cfg); err == nil || !strings.Contains(err.Error(), "may be committed") {
		t.Errorf("Open: %v", err)
	}

	cfg = c.config()
	cfg.SystemID = 78
	var refused *proposer.RefusedError
	if _, err := proposer.Open(patient(t), cfg); !errors.As(err, &refused) {
		t.Errorf("another system: %v", err)
	}
}
