package flush

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

var draining = &consensus.Error{Reason: "DRAINING", Detail: "the node is shutting down"}

func TestRunRestsAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		pool := NewPool(1 << 20)
		j := NewJanitor(pool)
		l := newWorld(log, func(c *Config) { c.Pool, c.Janitor = pool, j })
		l.Start()
		if j.Working() != 0 {
			t.Error("a goroutine for a timeline that nobody uses")
		}
		s := &fakeStream{}
		lane := lead(t, l, s, 1, synctest.Wait)
		put(t, lane, request(1, firstLSN, "data"))
		synctest.Wait()
		log.take()
		if j.Working() != 1 {
			t.Errorf("%d loops work", j.Working())
		}
		for range restTicksAfter + 3 {
			j.Tick()
			synctest.Wait()
		}
		expect(t, "one state frame proves a log that fell quiet", log.take(), "state term 1 end 0/1004, sync")
		if j.Working() != 0 {
			t.Errorf("%d idle loops work", j.Working())
		}
		put(t, lane, request(1, firstLSN+4, "more"))
		synctest.Wait()
		expect(t, "after the rest", log.take(), "append 1 at 0/1004, sync")
		if j.Working() != 1 {
			t.Errorf("%d loops work", j.Working())
		}
		if err := l.Stop(context.Background(), draining); err != nil {
			t.Fatal(err)
		}
		expect(t, "leaving", log.take(), "state term 1 end 0/1008, sync")
		if s.reason() != "DRAINING" || j.Working() != 0 {
			t.Errorf("ended with %q, %d loops work", s.reason(), j.Working())
		}
		if err := lane.Put(request(1, firstLSN+8, "late")); !errors.Is(err, ErrClosed) {
			t.Errorf("an append after the end: %v", err)
		}
		if l.Open(s) != nil || l.Post(Quiet(nil)) {
			t.Error("a stopped loop takes streams or events")
		}
		lane.Close()
		if err := l.Stop(context.Background(), draining); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStopPerformsWhatWasReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		l := newWorld(log, nil)
		s := &fakeStream{}
		lane := lead(t, l, s, 1, func() {})
		put(t, lane, request(1, firstLSN, "data"))
		l.Start()
		if err := l.Stop(context.Background(), draining); err != nil {
			t.Fatal(err)
		}
		expect(t, "stream", s.take(), "greeting ok, vote 1 true, ack 0/1004 commit 0/1000")
		lane.Close()
	})
}

func TestStopWhileBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		blocked := 0
		l := newWorld(log, func(c *Config) { c.Blocked = func() { blocked++ } })
		l.Start()
		s := &fakeStream{}
		lane := lead(t, l, s, 1, synctest.Wait)
		log.mu.Lock()
		log.space = []Space{SpaceWait, SpaceWait}
		log.mu.Unlock()
		put(t, lane, request(1, firstLSN, "data"))
		synctest.Wait()
		l.Prepared()
		synctest.Wait()
		if blocked != 2 {
			t.Errorf("blocked %d times", blocked)
		}
		if err := l.Stop(context.Background(), draining); err != nil {
			t.Fatal(err)
		}
		if l.InboxBytes() != 0 || s.reason() != "DRAINING" {
			t.Errorf("%d bytes are left; ended with %q", l.InboxBytes(), s.reason())
		}
		lane.Close()
	})
}

func TestPreparedLetsTheLoopGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		l := newWorld(log, nil)
		l.Start()
		lane := lead(t, l, &fakeStream{}, 1, synctest.Wait)
		log.mu.Lock()
		log.space = []Space{SpaceWait}
		log.mu.Unlock()
		put(t, lane, request(1, firstLSN, "data"))
		synctest.Wait()
		l.Prepared()
		if _, err := l.Wait(context.Background(), func(p Positions) bool { return p.Flush == firstLSN+4 }); err != nil {
			t.Fatal(err)
		}
		_ = l.Stop(context.Background(), draining)
		lane.Close()
	})
}

func TestTheJanitorCutsOffWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewPool(1 << 20)
		j := NewJanitor(pool)
		l := newWorld(&fakeLog{}, func(c *Config) { c.Pool, c.Janitor = pool, j })
		l.Start()
		s := &fakeStream{hold: make(chan struct{}), cut: make(chan struct{})}
		lane := lead(t, l, s, 1, synctest.Wait)
		other := &fakeStream{}
		second := l.Open(other)
		put(t, second, &consensus.Greeting{Version: consensus.Version, Timeline: timeline, Creation: creation, Proposer: wal.ProposerID{9}, Connection: 1, Membership: members})
		for range stuckTicksMax {
			j.Tick()
			synctest.Wait()
		}
		expect(t, "too early", other.take(), "")
		j.Tick()
		synctest.Wait()
		expect(t, "the other stream", other.take(), "greeting ok")
		_ = l.Stop(context.Background(), draining)
		lane.Close()
		second.Close()
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	l := newWorld(&fakeLog{}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if p, err := l.Wait(ctx, func(p Positions) bool { return p.Commit > firstLSN }); !errors.Is(err, context.Canceled) || p.Commit != firstLSN {
		t.Errorf("%+v, %v", p, err)
	}
}
