package crashimage

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// script drives one acceptor through everything that writes to its disk, in an
// order that comes from a seed.
type script struct {
	rng  *rand.Rand
	c    *client
	node *fleet.Node

	s       *stream
	term    wal.Term // highest that was asked for
	at      wal.LSN  // where the next append begins
	commit  wal.LSN
	horizon wal.LSN

	stats Stats
}

// Stats counts what a run did.
type Stats struct {
	Acks      int    `json:"acks"`
	Bytes     uint64 `json:"bytes"`
	Elections int    `json:"elections"`
	Cuts      int    `json:"truncations"`
	Trims     int    `json:"trims"`
	Kills     int    `json:"kills"`
	Writes    int    `json:"disk_writes"`
	Flushes   int    `json:"disk_flushes"`
}

func (x *Stats) add(y Stats) {
	x.Acks += y.Acks
	x.Bytes += y.Bytes
	x.Elections += y.Elections
	x.Cuts += y.Cuts
	x.Trims += y.Trims
	x.Kills += y.Kills
	x.Writes += y.Writes
	x.Flushes += y.Flushes
}

// run creates the timeline and performs steps until enough bytes were sent.
func (x *script) run(ctx context.Context, bytes uint64) error {
	if err := x.c.create(ctx); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	x.at, x.commit, x.horizon = x.c.book.First, x.c.book.First, x.c.book.First
	if err := x.campaign(ctx); err != nil {
		return err
	}
	for x.stats.Bytes < bytes {
		if err := x.step(ctx); err != nil {
			return err
		}
	}
	err := x.s.acked(x.at, 0)
	x.s.close()
	return err
}

func (x *script) step(ctx context.Context) error {
	switch p := x.rng.IntN(100); {
	case p < 55:
		return x.burst()
	case p < 75:
		return x.advance()
	case p < 85:
		return x.campaign(ctx)
	case p < 92:
		return x.trim(ctx)
	case p < 95:
		return x.kill(ctx)
	case p < 97: // long enough for the acceptor to see that the log is quiet
		time.Sleep(time.Duration(x.rng.IntN(400)) * time.Millisecond)
		return nil
	}
	return x.reconnect(ctx)
}

// burst appends a few times and waits for all, for some, or for none of them.
func (x *script) burst() error {
	began := x.at
	for range 1 + x.rng.IntN(20) {
		x.append()
	}
	switch x.rng.IntN(4) {
	case 0:
		return nil
	case 1:
		return x.s.acked(began+(x.at-began)/2, 0)
	}
	return x.s.acked(x.at, 0)
}

func (x *script) append() {
	var n int
	switch p := x.rng.IntN(100); {
	case p < 40:
		n = 1 + x.rng.IntN(600)
	case p < 95:
		n = 1 + x.rng.IntN(8<<10)
	case p < 99:
		n = 1 + x.rng.IntN(150<<10)
	default:
		n = wal.RequestBytesMax - x.rng.IntN(1000)
	}
	x.at = x.s.append(x.at, n, x.commit, x.horizon)
	x.stats.Bytes += uint64(n)
}

// flushed is what the acceptor has acknowledged in this term.
func (x *script) flushed() wal.LSN {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	return x.s.flush
}

// between draws a position in [low, high].
func (x *script) between(low, high wal.LSN) wal.LSN {
	if high <= low {
		return low
	}
	return low + wal.LSN(x.rng.Uint64N(uint64(high-low)+1))
}

// advance moves commit and horizon up to somewhere below what is durable.
func (x *script) advance() error {
	x.commit = x.between(x.commit, x.flushed())
	x.horizon = x.between(x.horizon, x.commit)
	x.s.heartbeat(x.commit, x.horizon)
	if x.rng.IntN(2) == 0 {
		return x.s.acked(0, x.commit)
	}
	return nil
}

// campaign is a new proposer that wins with the log of this acceptor up to
// somewhere above its commit: what lies beyond is cut off. Appends of the one
// before may still be on their way. Now and then it only gets the vote.
func (x *script) campaign(ctx context.Context) error {
	old := x.s
	if old != nil && x.rng.IntN(2) == 0 {
		if err := old.acked(x.at, 0); err != nil {
			return err
		}
	}
	for {
		var who wal.ProposerID
		binary.LittleEndian.PutUint64(who[:], x.rng.Uint64())
		who[15] = 1
		s, g, err := x.c.open(ctx, who)
		if err != nil {
			return fmt.Errorf("greet: %w", err)
		}
		x.term = max(x.term, g.Term) + 1 + wal.Term(x.rng.IntN(3))
		v, err := s.vote(x.term)
		if err != nil || !v.Granted {
			s.close()
			return fmt.Errorf("no vote in term %d: %+v, %w", x.term, v, err)
		}
		if x.rng.IntN(4) == 0 {
			s.close()
			continue // somebody else was quicker
		}
		if old != nil {
			old.close()
		}
		start := v.Flush
		if x.rng.IntN(3) > 0 {
			start = x.between(max(v.Commit, x.c.book.First), v.Flush)
		}
		if start < v.Flush {
			x.stats.Cuts++
		}
		x.stats.Elections++
		if err := s.elect(v, x.term, start); err != nil {
			s.close()
			return err
		}
		x.s, x.at, x.commit, x.horizon = s, start, v.Commit, v.Horizon
		return nil
	}
}

// reconnect goes on in the same term over another stream, as after a network fault.
func (x *script) reconnect(ctx context.Context) error {
	term := x.s.term
	x.s.close()
	s, g, err := x.c.open(ctx, x.s.who)
	if err != nil {
		return fmt.Errorf("greet again: %w", err)
	}
	if g.Term != term {
		s.close()
		return fmt.Errorf("the acceptor went from term %d to term %d by itself", term, g.Term)
	}
	v, err := s.vote(term)
	if err != nil || !v.Granted {
		s.close()
		return fmt.Errorf("the vote of term %d is not given to the same proposer again: %+v, %w", term, v, err)
	}
	x.s, x.at = s, v.Flush
	if v.History.LastTerm() == term {
		s.mu.Lock()
		s.term, s.commit = term, v.Commit
		s.mu.Unlock()
		s.heartbeat(x.commit, x.horizon) // if Elected was not adopted the stream ends
		return nil
	}
	// Its Elected was lost with the stream.
	return s.elect(v, term, v.Flush)
}

// kill ends the process as kill -9 does and starts it again.
func (x *script) kill(ctx context.Context) error {
	x.node.Kill()
	x.stats.Kills++
	if err := x.node.Start(ctx); err != nil {
		return fmt.Errorf("after kill -9: %w", err)
	}
	return x.reconnect(ctx)
}

// trim lets go of the oldest segments, which are used again.
func (x *script) trim(ctx context.Context) error {
	if err := x.s.acked(x.at, 0); err != nil {
		return err
	}
	x.commit = x.at
	x.horizon = x.between(x.horizon, x.commit)
	x.s.heartbeat(x.commit, x.horizon)
	if err := x.s.acked(0, x.commit); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	st, err := x.c.status(ctx) // no acknowledgement says how far the horizon is
	if err != nil {
		return err
	}
	x.stats.Trims++
	if err := x.c.trim(ctx, wal.LSN(st.GetHorizonLsn())); err != nil {
		return fmt.Errorf("trim below %v: %w", wal.LSN(st.GetHorizonLsn()), err)
	}
	return nil
}
