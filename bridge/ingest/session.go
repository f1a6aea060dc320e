package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// errWriter marks an end of session that came from the log's side.
var errWriter = errors.New("the log is not writable")

// laterVotes is how long a decision that hangs on a member's vote waits for it.
const laterVotes = 500 * time.Millisecond

// session is one attachment, from connect to the first fault.
type session struct {
	*Bridge
	life context.Context         // of the session, and so of its connections
	fail context.CancelCauseFunc // ends it
	wg   sync.WaitGroup          // goroutines of the session

	connMu   sync.Mutex // guards the change of conn while decide replaces it
	conn     *pgclient.Conn
	server   pgwal.Server
	history  []byte        // newest TLI's history file
	timeout  time.Duration // wal_sender_timeout, 0 = off
	feedback *feedback     // of conn, since it streams

	// decideMu is held while decide works on the fields below it and around it,
	// and by the stream when it takes them over.
	decideMu   sync.Mutex
	leading    bool              // the stream has taken over
	own        map[wal.Term]bool // terms that decide let begin
	properties []byte            // as adopted
	verdict    pgwal.Verdict
	undecided  *pgwal.RefusedError // why the decision may not hold

	pos     wal.LSN // end of what has been taken from the stream
	tli     pgwal.TLI
	storm   storm
	pending []byte // WAL received with the proof that lies beyond the start
}

// session attaches once and streams until something ends it.
func (b *Bridge) session(ctx context.Context) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	s := &session{Bridge: b, life: ctx, fail: fail, own: map[wal.Term]bool{}}
	defer func() {
		fail(nil)
		s.disconnect()
		s.wg.Wait()
		// The first fault is the reason, not what it broke.
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
	}()
	if err := s.connect(ctx); err != nil {
		return err
	}
	b.status.identified(s.server)
	b.log.Info("connected to PostgreSQL", zap.Stringer("address", s.conn.RemoteAddr()), zap.Uint64("system_id", s.server.SystemID),
		zap.Uint32("tli", uint32(s.server.Ancestry.Last())), zap.Stringer("flush_lsn", s.server.Flush))
	w, err := b.config.Log.Open(ctx, s.server.SystemID, s.decide)
	if err != nil {
		if s.undecided != nil && pgclient.KindOf(err) == pgclient.Other {
			return s.undecided
		}
		return err
	}
	defer w.Close()
	err = s.stream(ctx, w)
	fail(err) // before Close, whose effects are not the reason
	return err
}

// connect dials and asks the server all that must be known of it. ctx bounds
// that; the connection lives as long as the session.
func (s *session) connect(ctx context.Context) error {
	s.disconnect()
	conn, err := pgclient.Dial(ctx, s.config.Postgres)
	if err != nil {
		return err
	}
	s.connMu.Lock()
	s.conn = conn
	s.connMu.Unlock()
	s.wg.Add(1)
	release := context.AfterFunc(s.life, func() { conn.Close(); s.wg.Done() })
	undo := func() {
		if release() {
			s.wg.Done()
		}
	}
	if s.server, s.history, err = conn.Server(ctx); err == nil {
		s.timeout, err = conn.SenderTimeout(ctx)
	}
	if err == nil {
		err = s.needSlot(ctx)
	}
	if err != nil {
		undo()
		conn.Close()
		return err
	}
	return nil
}

// needSlot makes the slot if it is missing. Slots do not fail over, so a
// promoted primary does not have it.
func (s *session) needSlot(ctx context.Context) error {
	slot, err := s.conn.ReadSlot(ctx, s.config.Slot)
	if err != nil && !errors.Is(err, pgclient.ErrNoReadSlot) {
		return err
	}
	if slot.Exists && slot.Restart != 0 {
		return nil
	}
	if slot.Exists {
		return nil // it keeps nothing yet; the stream's first report changes that
	}
	created, err := s.conn.CreateSlot(ctx, s.config.Slot)
	if created {
		s.log.Info("made the replication slot that was missing", zap.String("slot", s.config.Slot))
	}
	return err
}

// disconnect closes the connection and waits for what used it.
func (s *session) disconnect() {
	s.connMu.Lock()
	conn, feedback := s.conn, s.feedback
	s.conn, s.feedback = nil, nil
	s.connMu.Unlock()
	if conn != nil {
		conn.Close()
	}
	if feedback != nil {
		feedback.stop()
	}
}

// decide is called by the election with what it found, before anything changes.
func (s *session) decide(ctx context.Context, e Election) (Decision, error) {
	s.decideMu.Lock()
	defer s.decideMu.Unlock()
	if s.leading {
		// Another campaign of the same writer. Where the log's last bytes are its
		// own there is nothing to judge anew; where they are not, only a new
		// attachment can tell.
		if !s.own[e.History.LastTerm()] {
			return Decision{}, fmt.Errorf("%w: term %d was written by someone else", errWriter, e.History.LastTerm())
		}
		s.own[e.Term] = true
		return Decision{Start: e.Start, SystemID: s.server.SystemID, Properties: s.properties}, nil
	}
	if err := s.connect(ctx); err != nil { // how far the server's WAL reaches now
		return Decision{}, err
	}
	l := pgwal.Log{Written: e.Written(), Unfence: s.config.Unfence, End: e.Start, Commit: e.Commit, MayBeCommitted: e.MayBeCommitted}
	if l.Written {
		var err error
		if l.Properties, err = pgwal.DecodeProperties(e.Properties); err != nil {
			return Decision{}, &pgwal.RefusedError{Refusal: pgwal.Foreign, Final: true, Reason: err.Error(), Remedy: "use another --timeline"}
		}
	}
	verdict, err := pgwal.Judge(l, s.server)
	s.undecided = nil
	if errors.As(err, &s.undecided) && s.undecided.Refusal == pgwal.BelowCommit && !s.undecided.Final {
		// Only a member that has not answered yet can tell. It is given a moment;
		// then the election itself knows whether the decision holds.
		select {
		case <-time.After(laterVotes):
		case <-ctx.Done():
			return Decision{}, ctx.Err()
		}
		err = nil
	}
	if err != nil {
		return Decision{}, err
	}
	s.verdict = verdict
	p := pgwal.Properties{SystemID: s.server.SystemID, Segment: s.server.Segment, VersionMajor: s.server.VersionMajor,
		Ancestry: s.server.Ancestry, History: s.history}
	if s.properties, err = p.Encode(); err != nil {
		return Decision{}, err
	}
	if err := s.prove(ctx, e); err != nil {
		return Decision{}, err
	}
	if verdict.Start < e.Start {
		s.log.Warn("PostgreSQL was promoted below the log's end; the log is cut there, nothing beyond it was acknowledged",
			zap.Stringer("start_lsn", verdict.Start), zap.Stringer("end_lsn", e.Start))
	}
	s.own[e.Term] = true
	return Decision{Start: verdict.Start, SystemID: s.server.SystemID, Properties: s.properties}, nil
}
