package walserver

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwire"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// xlogDataBytesMax is how much WAL goes into one message, as PostgreSQL does it.
const xlogDataBytesMax = 128 << 10

// start begins to stream, or says why not.
func (c *conn) start(ctx context.Context, cmd pgwire.Command) error {
	ancestry := served(c.view)
	tli := pgwal.TLI(cmd.Timeline)
	if tli == 0 {
		tli = ancestry.Last()
	}
	i := ancestry.Find(tli)
	if i < 0 {
		c.refuse("55000", "requested timeline %d is not in this server's history", tli)
		return nil
	}
	end, historic := ancestry.End(i)
	oldest := max(c.view.First, c.view.Oldest)
	switch {
	case historic && cmd.Start > end:
		c.refuse("55000", "requested starting point %v on timeline %d is not in this server's history: it left that timeline at %v", cmd.Start, tli, end)
		return nil
	case !historic && cmd.Start > c.view.Commit:
		c.refuse("55000", "requested starting point %v is ahead of the WAL flush position of this server %v", cmd.Start, c.view.Commit)
		return nil
	case cmd.Start < oldest:
		c.refuse("58P01", "requested WAL segment %s has already been removed: the log begins at %v", c.view.Properties.Segment.FileName(tli, cmd.Start), oldest)
		return nil
	}
	release, err := c.server.slots.acquire(cmd.Name, c.id)
	if err != nil {
		var refused *slotError
		errors.As(err, &refused)
		c.refuse(refused.code, "%s", refused.message)
		return nil
	}
	defer release()
	s := &stream{conn: c, slot: cmd.Name, tli: tli, pos: cmd.Start, view: c.view}
	s.findEnd()
	if !s.atEnd() {
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	if s.atEnd() {
		c.row(column{"next_tli", oidInt8, []byte(strconv.FormatUint(uint64(s.next), 10))}, text("next_tli_startpos", s.end.String()))
		c.complete("START_STREAMING")
	}
	c.complete(string(pgwire.StartReplication))
	return nil
}

// stream is one START_REPLICATION.
type stream struct {
	*conn
	slot string
	tli  pgwal.TLI
	pos  wal.LSN     // the next byte to send
	view quorum.View // as of the newest term that was met

	ended bool      // the TLI ended, at end, and next follows
	end   wal.LSN   // meaningful if ended
	next  pgwal.TLI // likewise

	writeMu sync.Mutex // one message at a time
	header  []byte     // guarded by writeMu
	sent    time.Time  // when the last message went; guarded by writeMu
	commit  wal.LSN    // guarded by writeMu
}

func (s *stream) atEnd() bool { return s.ended && s.pos == s.end }

// findEnd looks whether the TLI has ended.
func (s *stream) findEnd() {
	a := served(s.view)
	if i := a.Find(s.tli); i >= 0 {
		if s.end, s.ended = a.End(i); s.ended {
			s.next = a[i+1].TLI
		}
	}
}

// Ends of a stream that are no faults.
var (
	errClientDone = errors.New("the client has ended the stream")
	errTLIEnded   = errors.New("the timeline has ended")
)

// run streams until the client has enough, the TLI ends, or something breaks.
func (s *stream) run(ctx context.Context) error {
	s.backend.Send(&pgproto3.CopyBothResponse{})
	if err := s.backend.Flush(); err != nil {
		return err
	}
	s.log.Info("streaming", zap.String("name", s.name), zap.Uint32("tli", uint32(s.tli)), zap.Stringer("from", s.pos))
	s.server.config.Observer.Streaming(1)
	defer s.server.config.Observer.Streaming(-1)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.commit, s.sent = s.view.Commit, time.Now()
	replies := make(chan struct{})
	go func() { // the client's side
		defer close(replies)
		stop(s.listen())
	}()
	beat := make(chan struct{})
	go func() { // signs of life, also while the acceptors say nothing
		defer close(beat)
		s.beat(ctx)
	}()
	err := s.server.config.Source.Follow(ctx, s.view.Creation, s.pos, s.send, s.idle)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	stop(err)
	<-beat
	if errors.Is(err, errTLIEnded) || errors.Is(err, errClientDone) {
		return s.finish(replies)
	}
	var trimmed *quorum.TrimmedError
	if errors.As(err, &trimmed) {
		s.refuse("58P01", "requested WAL segment %s has already been removed", s.view.Properties.Segment.FileName(s.tli, s.pos))
		s.backend.Flush()
	}
	s.net.Close()
	<-replies
	return err
}

// finish ends the copying on both sides.
func (s *stream) finish(replies chan struct{}) error {
	s.net.SetDeadline(time.Now().Add(startupTimeout))
	defer s.net.SetDeadline(time.Time{})
	s.backend.Send(&pgproto3.CopyDone{})
	if err := s.backend.Flush(); err != nil {
		s.net.Close()
		<-replies
		return err
	}
	<-replies
	return nil
}

// listen takes what the client sends until it ends the stream.
func (s *stream) listen() error {
	for {
		m, err := s.backend.Receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *pgproto3.CopyDone:
			return errClientDone
		case *pgproto3.CopyData:
			if err := s.reply(m.Data); err != nil {
				return err
			}
		case *pgproto3.CopyFail:
			return errors.New("the client gave up: " + m.Message)
		default:
			return errors.New("the client left while streaming")
		}
	}
}

func (s *stream) reply(b []byte) error {
	var status pgwire.StatusUpdate
	var feedback pgwire.HotStandbyFeedback
	if len(b) > 0 && b[0] == 'h' {
		return feedback.Decode(b)
	}
	if err := status.Decode(b); err != nil {
		return err
	}
	s.server.slots.reached(s.slot, status.Flush, s.tli)
	if status.ReplyRequested {
		return s.keepalive(false)
	}
	return nil
}

// send sends what was read, as far as it belongs to the TLI.
func (s *stream) send(c wal.Chunk, term wal.Term) error {
	if term > s.view.Term {
		// A TLI can have ended only with a new term.
		if err := s.refresh(term); err != nil {
			return err
		}
	}
	s.view.Commit = max(s.view.Commit, c.End())
	data := c.Data
	if s.ended && c.End() > s.end {
		data = data[:s.end-s.pos]
	}
	for len(data) > 0 {
		n := min(len(data), xlogDataBytesMax)
		if err := s.write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	if s.atEnd() {
		return errTLIEnded
	}
	return nil
}

// refresh asks for the ancestry as of term.
func (s *stream) refresh(term wal.Term) error {
	for {
		v, err := s.look(s.server.ctx)
		if err == nil && v.Term >= term {
			s.view = v
			s.findEnd()
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-s.server.ctx.Done():
			return s.server.ctx.Err()
		}
	}
}

// idle looks whether the TLI ended while nothing came.
func (s *stream) idle(commit wal.LSN) error {
	s.writeMu.Lock()
	s.commit = max(s.commit, commit)
	s.writeMu.Unlock()
	if v, err := s.look(s.server.ctx); err == nil && v.Term >= s.view.Term {
		s.view = v
		s.findEnd()
	}
	if s.atEnd() {
		return errTLIEnded
	}
	return nil
}

func (s *stream) write(data []byte) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	now := time.Now()
	s.commit = max(s.commit, s.pos+wal.LSN(len(data)))
	x := pgwire.XLogData{Start: s.pos, ServerEnd: s.commit, Time: pgwire.Micros(now), Data: data}
	s.header = x.AppendHeader(s.header[:0])
	s.net.SetWriteDeadline(now.Add(writeTimeout))
	bufs := net.Buffers{s.header, data}
	if _, err := bufs.WriteTo(s.net); err != nil {
		return err
	}
	s.pos += wal.LSN(len(data))
	s.sent = now
	s.server.config.Observer.Sent(len(data))
	return nil
}

func (s *stream) keepalive(wantReply bool) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	now := time.Now()
	k := pgwire.Keepalive{ServerEnd: s.commit, Time: pgwire.Micros(now), ReplyRequested: wantReply}
	s.header = k.AppendFrame(s.header[:0])
	s.net.SetWriteDeadline(now.Add(writeTimeout))
	_, err := s.net.Write(s.header)
	s.sent = now
	return err
}

// beat asks an idle client for a sign of life.
func (s *stream) beat(ctx context.Context) {
	tick := time.NewTicker(s.server.config.Keepalive)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.writeMu.Lock()
		idle := time.Since(s.sent) >= s.server.config.Keepalive/2
		s.writeMu.Unlock()
		if idle && s.keepalive(true) != nil {
			return // Follow or listen meet the same fault
		}
	}
}
