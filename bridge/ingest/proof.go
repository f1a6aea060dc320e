package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// proofBytesMin is how much is compared at least, where both sides still have it.
const proofBytesMin = 64 << 10

// prove opens the stream and compares what it sends with the donor's log up to
// the start (rule R3). It leaves the stream at the start. Bytes are only ever
// compared, never overwritten.
//
// Nothing else sees a cold clone of the cluster that has been started: it has
// the same system identifier and the same TLI.
func (s *session) prove(ctx context.Context, e Election) error {
	start := s.verdict.Start
	first := start // the first byte of the log
	if e.Written() {
		first = e.History[0].LSN
	}
	var last error
	for first < start {
		last = s.compareFrom(ctx, e, first)
		var trimmed *TrimmedError
		if !errors.As(last, &trimmed) || trimmed.Oldest <= first {
			break
		}
		first = trimmed.Oldest
	}
	if first >= start || s.config.Trust && pgclient.KindOf(last) == pgclient.WALRemoved {
		if err := s.connect(ctx); err != nil {
			return err
		}
		return s.startStream(ctx, start)
	}
	if pgclient.KindOf(last) == pgclient.WALRemoved {
		return &pgwal.RefusedError{Refusal: pgwal.Unproven, Final: true,
			Reason: fmt.Sprintf("PostgreSQL no longer has WAL below %v, so it cannot be shown that it is the server that wrote the log (%v)", start, last),
			Remedy: "if no copy of this cluster has run since, attach once with --trust"}
	}
	return last
}

// compareFrom compares the last proofBytesMin, in whole segments, that lie at or
// above first; or, where PostgreSQL has removed the older of these segments, what is left.
func (s *session) compareFrom(ctx context.Context, e Election, first wal.LSN) error {
	start := s.verdict.Start
	wide := max(s.server.Segment.Begin(start-min(start, proofBytesMin)), first)
	narrow := max(s.server.Segment.Begin(start), first)
	err := s.compare(ctx, e, wide)
	if pgclient.KindOf(err) == pgclient.WALRemoved && wide < narrow && narrow < start {
		err = s.compare(ctx, e, narrow)
	}
	return err
}

// compare streams from from and compares up to the start.
func (s *session) compare(ctx context.Context, e Election, from wal.LSN) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.startStream(ctx, from); err != nil {
		return err
	}
	start := s.verdict.Start
	var have []byte // received, not yet compared; the connection's memory
	each := func(stored []byte) error {
		for len(stored) > 0 {
			for len(have) == 0 {
				var err error
				if have, err = s.receive(ctx); err != nil {
					return err
				}
			}
			n := min(len(stored), len(have))
			if !bytes.Equal(stored[:n], have[:n]) {
				at := s.pos - wal.LSN(len(have))
				for i := range n {
					if stored[i] != have[i] {
						at += wal.LSN(i)
						break
					}
				}
				return &pgwal.RefusedError{Refusal: pgwal.Foreign, Final: true,
					Reason: fmt.Sprintf("PostgreSQL's WAL differs from the log at %v: it is a copy of the cluster that went its own way", at),
					Remedy: "attach the server that wrote the log; rejoin this one with pg_rewind -c or a new base backup"}
			}
			stored, have = stored[n:], have[n:]
		}
		return nil
	}
	if err := s.config.Log.ReadDonor(ctx, e, from, start, each); err != nil {
		return err
	}
	if at := s.pos - wal.LSN(len(have)); at != start {
		return fmt.Errorf("the log's donor ended the comparison at %v instead of %v", at, start)
	}
	s.pending = append(s.pending[:0], have...)
	return nil
}

// startStream asks for WAL from from on, and starts to answer keepalives. A
// slot that another connection still holds is waited for: PostgreSQL notices
// a dead client only after wal_sender_timeout.
func (s *session) startStream(ctx context.Context, from wal.LSN) error {
	s.pos = from
	s.tli = s.server.Ancestry[s.server.Ancestry.At(from)].TLI
	s.pending = nil
	for deadline := time.Now().Add(s.timeout + slotPatienceExtra); ; {
		err := s.startTLI(ctx)
		var p *pgclient.Problem
		if !errors.As(err, &p) || p.Kind != pgclient.SlotInUse || time.Now().After(deadline) {
			if err != nil {
				return err
			}
			break
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f := newFeedback(s.conn, s.statusInterval(), s.server.Segment, s.observ)
	s.connMu.Lock()
	s.feedback = f
	s.connMu.Unlock()
	return nil
}

// startTLI starts the stream on s.tli at s.pos, or on a later TLI if nothing is left there.
func (s *session) startTLI(ctx context.Context) error {
	for {
		next, err := s.conn.Start(ctx, s.config.Slot, s.pos, s.tli)
		if err != nil || next.TLI == 0 {
			return err
		}
		if err := s.follow(next); err != nil {
			return err
		}
	}
}

// follow checks that the server's next TLI is the one its history named.
func (s *session) follow(next pgclient.Next) error {
	i := s.server.Ancestry.Find(next.TLI)
	if i < 0 || s.server.Ancestry[i].Begin != s.pos || next.Begin != s.pos {
		return fmt.Errorf("PostgreSQL ended timeline %d at %v and continues with timeline %d at %v, which its history does not say", s.tli, s.pos, next.TLI, next.Begin)
	}
	s.tli = next.TLI
	return nil
}

// statusInterval is how often a status is sent when nothing happens.
func (s *session) statusInterval() time.Duration {
	if s.timeout == 0 {
		return statusInterval
	}
	return max(min(statusInterval, s.timeout/4), 10*time.Millisecond)
}

// idleTimeout is how long silence is believed: every status asks for an answer.
func (s *session) idleTimeout() time.Duration { return max(3*s.statusInterval(), idleTimeoutMin) }

// receive returns the next WAL of the stream; it is valid until the next call.
func (s *session) receive(ctx context.Context) ([]byte, error) {
	for {
		m, err := s.conn.Receive(s.idleTimeout())
		switch {
		case err != nil:
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, err
		case m.IsAlive:
			s.status.serverEnd.Store(uint64(m.Keepalive.ServerEnd))
			s.status.heard()
			if err := s.alive(m.Keepalive.ReplyRequested); err != nil {
				return nil, err
			}
		case m.Next.TLI != 0:
			if err := s.follow(m.Next); err != nil {
				return nil, err
			}
			if err := s.startTLI(ctx); err != nil {
				return nil, err
			}
		default:
			if m.Data.Start != s.pos {
				return nil, fmt.Errorf("PostgreSQL sent WAL at %v where %v was next", m.Data.Start, s.pos)
			}
			s.pos += wal.LSN(len(m.Data.Data))
			s.status.serverEnd.Store(uint64(m.Data.ServerEnd))
			s.status.heard()
			s.feedback.received(m.Data)
			return m.Data.Data, nil
		}
	}
}
