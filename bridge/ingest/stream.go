package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// stream moves WAL from the connection that prove has positioned into w, and
// commit positions back, until something breaks.
func (s *session) stream(ctx context.Context, w Writer) error {
	s.decideMu.Lock()
	s.leading = true
	s.decideMu.Unlock()
	if s.feedback == nil {
		return fmt.Errorf("%w: the election was won without a decision", errWriter)
	}
	b := &s.Bridge.status
	b.attached(s.server, s.tli, s.verdict.Start)
	s.log.Info("streaming", zap.Stringer("start_lsn", s.verdict.Start), zap.Uint32("tli", uint32(s.tli)))

	// What is still on its way when the session ends is not waited for: it was
	// not acknowledged, and PostgreSQL sends it again.
	s.wg.Go(func() { s.watchWriter(ctx, w) })
	s.wg.Go(func() { s.watchCommit(ctx, w) })
	s.wg.Go(func() { s.watchShutdown(ctx) })

	at := s.verdict.Start
	data := s.pending
	s.pending = nil
	for {
		if len(data) > 0 {
			b.appending.Store(time.Now().UnixNano())
			begin, end, err := w.Append(ctx, data)
			b.appending.Store(0)
			if err != nil {
				return s.writerError(ctx, w, err)
			}
			if begin != at {
				return fmt.Errorf("%w: WAL of %v would have gone to %v", errWriter, at, begin)
			}
			at = end
			b.received.Store(uint64(at))
		}
		tli := s.tli
		var err error
		if data, err = s.receive(ctx); err != nil {
			return err
		}
		if s.tli != tli {
			b.switched(s.tli)
			s.log.Info("the stream goes on with the next timeline", zap.Uint32("tli", uint32(s.tli)), zap.Stringer("lsn", at))
		}
	}
}

func (s *session) writerError(ctx context.Context, w Writer, err error) error {
	select {
	case <-w.Done():
		err = w.Err()
	default:
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
	}
	var fenced *FencedError
	if errors.As(err, &fenced) {
		return err
	}
	return fmt.Errorf("%w: %w", errWriter, err)
}

// watchWriter ends the session when the log is lost. On a higher term the
// connection is closed at once, and nothing is reported any more.
func (s *session) watchWriter(ctx context.Context, w Writer) {
	select {
	case <-w.Done():
		s.fail(s.writerError(ctx, w, nil))
	case <-ctx.Done():
	}
}

// watchCommit acknowledges every advance of the commit position.
func (s *session) watchCommit(ctx context.Context, w Writer) {
	reported := wal.LSN(0)
	for commit := w.Commit(); ; commit = w.Commit() {
		if commit > reported {
			select {
			case <-w.Done():
				return // fenced meanwhile: what was learned before may stand, but say no more
			default:
			}
			if err := s.feedback.acknowledge(commit); err != nil {
				s.fail(err)
				return
			}
			reported = commit
			s.Bridge.status.committed(commit)
		}
		if err := w.Wait(ctx, reported+1); err != nil {
			return // watchWriter knows why
		}
	}
}

// alive takes a keepalive. A burst of demands for a reply, with nothing in
// between, is how a walsender waits for its last WAL to be acknowledged before
// PostgreSQL can shut down. If the quorum is lost that wait would never end, so
// the connection is given up.
func (s *session) alive(replyRequested bool) error {
	if !replyRequested {
		return nil
	}
	s.feedback.demanded()
	st := &s.storm
	commit := s.feedback.commit.Load()
	if st.pos != s.pos || st.commit != commit || st.demands == 0 || time.Since(st.latest) > time.Second {
		*st = storm{pos: s.pos, commit: commit, since: time.Now()}
	}
	st.demands++
	st.latest = time.Now()
	if wal.LSN(commit) < s.pos && st.demands >= stormReplies && st.latest.Sub(st.since) > stormPatience {
		return &pgclient.Problem{Kind: pgclient.ShuttingDown, Err: fmt.Errorf(
			"the server waits to shut down, but WAL from %v to %v is not committed; it is let go", wal.LSN(commit), s.pos)}
	}
	return nil
}

// storm is a run of keepalives that demand an answer while nothing changes.
type storm struct {
	pos     wal.LSN
	commit  uint64
	demands int
	since   time.Time
	latest  time.Time
}

// watchShutdown looks whether PostgreSQL is shutting down while the window is
// full: then nothing is read from the connection and a storm cannot be seen.
func (s *session) watchShutdown(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if since := s.Bridge.status.appending.Load(); since == 0 || time.Since(time.Unix(0, since)) < probeAfter {
			continue
		}
		probe, cancel := context.WithTimeout(ctx, probeEvery)
		conn, err := pgclient.Dial(probe, s.config.Postgres)
		cancel()
		if err == nil {
			conn.Close()
		} else if pgclient.KindOf(err) == pgclient.ShuttingDown {
			s.fail(err)
			return
		}
	}
}
