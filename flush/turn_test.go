package flush

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// leader is a loop with one stream that has won term 1.
func leader(t *testing.T, log *fakeLog, change func(*Config)) (*Loop, *Lane, *fakeStream) {
	t.Helper()
	l := newWorld(log, change)
	s := &fakeStream{}
	lane := lead(t, l, s, 1, func() { turns(l) })
	expect(t, "election on disk", log.take(), "state term 1 end 0/1000, sync, state term 1 end 0/1000, sync")
	expect(t, "election answered", s.take(), "greeting ok, vote 1 true")
	return l, lane, s
}

func TestOneSyncForAllThatWaits(t *testing.T) {
	log := &fakeLog{}
	var seen Turn
	l, lane, s := leader(t, log, func(c *Config) { c.Observe = func(t *Turn) { seen = *t } })
	for i := range 10 {
		put(t, lane, request(1, firstLSN+wal.LSN(i)*4, "data"))
	}
	put(t, lane, &consensus.AppendRequest{Generation: 1, Term: 1, Commit: firstLSN + 8})
	if got := turns(l); !slices.Equal(got, []Outcome{Done, Idle}) {
		t.Errorf("outcomes %v", got)
	}
	expect(t, "log", log.take(), "append 10 at 0/1000, sync")
	expect(t, "stream", s.take(), "ack 0/1028 commit 0/1024")
	if seen.Appends != 10 || seen.Heard != 11 || seen.Heartbeats != 1 || seen.Bytes != 40 || !seen.Wrote || seen.QueueNanos <= 0 || seen.WriteNanos <= 0 || seen.SyncNanos <= 0 {
		t.Errorf("observed %+v", seen)
	}
	if p := l.Positions(); p.Flush != firstLSN+40 || p.Commit != firstLSN+36 || p.LastLogTerm != 1 || p.StoredLastTerm != 1 {
		t.Errorf("positions %+v", p)
	}
	if l.InboxBytes() != 0 {
		t.Errorf("%d bytes are left in the inbox", l.InboxBytes())
	}
}

func TestAHeartbeatWritesNothing(t *testing.T) {
	log := &fakeLog{}
	l, lane, s := leader(t, log, nil)
	put(t, lane, &consensus.AppendRequest{Generation: 1, Term: 1})
	turns(l)
	expect(t, "log", log.take(), "")
	expect(t, "stream", s.take(), "ack 0/1000 commit 0/1000")
}

func TestControlMessagesTravelAlone(t *testing.T) {
	log := &fakeLog{}
	l, lane, s := leader(t, log, nil)
	other := &fakeStream{}
	rival := l.Open(other)
	put(t, lane, request(1, firstLSN, "data"))
	put(t, rival, &consensus.Greeting{Version: consensus.Version, Timeline: timeline, Creation: creation, Proposer: wal.ProposerID{9}, Connection: 1, Membership: members})
	put(t, rival, &consensus.VoteRequest{Generation: 1, Term: 2})
	put(t, lane, request(1, firstLSN+4, "late"))
	if got := turns(l); !slices.Equal(got, []Outcome{Done, Done, Done, Done, Idle}) {
		t.Errorf("outcomes %v", got)
	}
	expect(t, "log", log.take(), "append 1 at 0/1000, sync, state term 2 end 0/1004, sync")
	expect(t, "old stream", s.take(), "ack 0/1004 commit 0/1000, ack 0/0 commit 0/0")
	expect(t, "new stream", other.take(), "greeting ok, vote 2 true")
}

func TestBatchLimits(t *testing.T) {
	log := &fakeLog{}
	l, lane, s := leader(t, log, func(c *Config) { c.BatchBytesMax = 10 })
	for i := range 5 {
		put(t, lane, request(1, firstLSN+wal.LSN(i)*4, "data"))
	}
	turns(l)
	expect(t, "by bytes", log.take(), "append 2 at 0/1000, sync, append 2 at 0/1008, sync, append 1 at 0/1010, sync")
	s.take()

	l, lane, _ = leader(t, log, func(c *Config) { c.BatchRequestsMax = 1 })
	for i := range 2 {
		put(t, lane, request(1, firstLSN+wal.LSN(i)*4, "data"))
	}
	turns(l)
	expect(t, "flush per request", log.take(), "append 1 at 0/1000, sync, append 1 at 0/1004, sync")
}

func TestSegmentsAreSealedBetweenBatches(t *testing.T) {
	log := &fakeLog{}
	l, lane, s := leader(t, log, nil)
	put(t, lane, request(1, firstLSN, "data"))
	put(t, lane, request(1, firstLSN+4, "more"))
	log.space = []Space{SpaceOpen, SpaceNext, SpaceOpen}
	turns(l)
	expect(t, "seal with the batch", log.take(), "append 1 at 0/1000 seal, sync, append 1 at 0/1004, sync")
	expect(t, "stream", s.take(), "ack 0/1004 commit 0/1000, ack 0/1008 commit 0/1004")

	put(t, lane, &consensus.VoteRequest{Generation: 1, Term: 2})
	log.space = []Space{SpaceNext, SpaceOpen}
	turns(l)
	expect(t, "seal alone", log.take(), "seal, sync, state term 2 end 0/1008, sync")

	put(t, lane, &consensus.VoteRequest{Generation: 1, Term: 3})
	log.space = []Space{SpaceNext, SpaceNext}
	turns(l)
	expect(t, "a log that wants no end of seals", log.take(), "seal, sync")
	if l.Health() != wal.Poisoned {
		t.Errorf("health %v, expected poisoned", l.Health())
	}
}

func TestWaitingForASegment(t *testing.T) {
	log := &fakeLog{}
	l, lane, s := leader(t, log, nil)
	put(t, lane, request(1, firstLSN, "data"))
	put(t, lane, request(1, firstLSN+4, "more"))
	log.space = []Space{SpaceOpen, SpaceWait, SpaceWait, SpaceOpen}
	if got := turns(l); !slices.Equal(got, []Outcome{Done, Blocked}) {
		t.Errorf("outcomes %v", got)
	}
	expect(t, "stream", s.take(), "ack 0/1004 commit 0/1000")
	turns(l)
	expect(t, "log", log.take(), "append 1 at 0/1000, sync, append 1 at 0/1004, sync")
}

func TestAFullDiskRefusesAppendsAndStillVotes(t *testing.T) {
	log := &fakeLog{}
	l, lane, s := leader(t, log, nil)
	put(t, lane, request(1, firstLSN, "data"))
	put(t, lane, request(1, firstLSN+4, "more"))
	put(t, lane, request(1, firstLSN+8, "lost"))
	log.space = []Space{SpaceOpen, SpaceNone}
	turns(l)
	expect(t, "log", log.take(), "append 1 at 0/1000, sync")
	expect(t, "stream", s.take(), "ack 0/1004 commit 0/1000")
	if s.reason() != consensus.ReasonNoSpace || l.Health() != wal.Healthy {
		t.Errorf("ended with %q, health %v", s.reason(), l.Health())
	}
	lane.Close()
	again := &fakeStream{}
	lead(t, l, again, 2, func() { turns(l) })
	expect(t, "vote", again.take(), "greeting ok, vote 2 true")

	full := &fakeStream{}
	lane = l.Open(full)
	put(t, lane, &consensus.Greeting{Version: consensus.Version, Timeline: timeline, Creation: creation, Proposer: wal.ProposerID{7}, Connection: 1, Membership: members})
	put(t, lane, &consensus.VoteRequest{Generation: 1, Term: 3})
	log.space = []Space{SpaceNone}
	turns(l)
	expect(t, "a greeting needs no room", full.take(), "greeting ok")
	if full.reason() != consensus.ReasonNoSpace {
		t.Errorf("no room for a state frame: ended with %q", full.reason())
	}
}

func TestTheFirstDiskErrorIsFinal(t *testing.T) {
	for _, fail := range []string{"append", "sync"} {
		t.Run(fail, func(t *testing.T) {
			log := &fakeLog{}
			failed := 0
			l, lane, s := leader(t, log, func(c *Config) { c.Failed = func(error) { failed++ } })
			log.fail = fail
			put(t, lane, request(1, firstLSN, "data"))
			put(t, lane, &consensus.VoteRequest{Generation: 1, Term: 2})
			turns(l)
			log.fail = ""
			want := "append 1 at 0/1000"
			if fail == "sync" {
				want += ", sync"
			}
			expect(t, "log", log.take(), want)
			expect(t, "stream", s.take(), "")
			if s.reason() != consensus.ReasonPoisoned || failed != 1 {
				t.Errorf("ended with %q, told %d times", s.reason(), failed)
			}
			lane.Close()
			s = &fakeStream{}
			lane = lead(t, l, s, 3, func() { turns(l) })
			put(t, lane, request(3, firstLSN, "data"))
			turns(l)
			expect(t, "afterwards", s.take(), "greeting poisoned")
			expect(t, "log afterwards", log.take(), "")
			if p := l.Positions(); p.Flush != firstLSN || p.Health != wal.Poisoned {
				t.Errorf("positions %+v", p)
			}
		})
	}
}

func TestAnErrorDiscardsWhatTheStreamHadQueued(t *testing.T) {
	log := &fakeLog{}
	var refused []consensus.Reason
	l, lane, s := leader(t, log, func(c *Config) { c.Observe = func(t *Turn) { refused = append(refused, t.Refused...) } })
	put(t, lane, request(1, firstLSN, "data"))
	put(t, lane, request(1, firstLSN+5, "gap!"))
	put(t, lane, request(1, firstLSN+4, "next"))
	turns(l)
	put(t, lane, request(1, firstLSN+4, "next"))
	turns(l)
	expect(t, "log", log.take(), "append 1 at 0/1000, sync")
	expect(t, "stream", s.take(), "ack 0/1004 commit 0/1000")
	if s.reason() != consensus.ReasonGap || s.err.Expected != firstLSN+4 || !slices.Equal(refused, []consensus.Reason{consensus.ReasonGap}) {
		t.Errorf("ended with %+v, observed %v", s.err, refused)
	}
	lane.Close()
	turns(l)
	if l.Streams() != 0 || l.InboxBytes() != 0 {
		t.Errorf("%d streams, %d bytes", l.Streams(), l.InboxBytes())
	}
}

func TestABrokenStreamIsForgotten(t *testing.T) {
	log := &fakeLog{}
	l, lane, s := leader(t, log, nil)
	s.broken = fmt.Errorf("connection reset")
	put(t, lane, request(1, firstLSN, "data"))
	put(t, lane, &consensus.AppendRequest{Generation: 1, Term: 1})
	turns(l)
	s.take()
	put(t, lane, request(1, firstLSN+4, "data"))
	turns(l)
	expect(t, "log", log.take(), "append 1 at 0/1000, sync")
	expect(t, "stream", s.take(), "")
}

func TestEvents(t *testing.T) {
	log := &fakeLog{}
	l, lane, s := leader(t, log, nil)
	var results []error
	note := func(err error) { results = append(results, err) }
	put(t, lane, request(1, firstLSN, "data"))
	l.Post(Quiet(note))
	l.Post(Quiet(note))
	l.Post(PeerCommit(&consensus.PeerCommit{Creation: creation, LastLogTerm: 1, Commit: firstLSN + 4}))
	turns(l)
	expect(t, "log", log.take(), "append 1 at 0/1000, sync, state term 1 end 0/1004, sync")
	if p := l.Positions(); p.Commit != firstLSN+4 {
		t.Errorf("a peer's commit was not taken: %+v", p)
	}
	log.space = []Space{SpaceNone}
	l.Post(Quiet(note))
	turns(l)
	l.Post(Event{Saves: true, Done: note, Write: func(st *wal.State) error { return log.SaveState(st, firstLSN+4) }})
	turns(l)
	expect(t, "an event that writes by itself", log.take(), "state term 1 end 0/1004")
	l.Post(Quarantine())
	turns(l)
	l.Post(Event{Saves: true, Done: note, Write: func(st *wal.State) error { t.Error("written"); return nil }})
	turns(l)
	if got := fmt.Sprint(results); got != fmt.Sprint([]error{nil, nil, ErrNoSpace, nil, ErrUnhealthy}) {
		t.Errorf("events were told %v", got)
	}
	if s.reason() != consensus.ReasonQuarantined {
		t.Errorf("stream ended with %q", s.reason())
	}
}
