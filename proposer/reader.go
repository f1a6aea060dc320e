package proposer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// ReaderConfig says what to read. Acceptors and Timeline are required.
type ReaderConfig struct {
	Acceptors []string // where to ask, as in Config
	Timeline  wal.TimelineID

	Begin wal.LSN
	// End is where to stop. 0 is, without Follow, what the acceptors know to be
	// committed when the reader is made; with it, never.
	End wal.LSN
	// Follow waits for bytes that are not committed yet.
	Follow bool

	// PinnedTerm, if not 0, reads on beyond what is known to be committed, up to
	// what an acceptor has flushed, and only from acceptors whose log's last term
	// this is. It is for recovery by the winner of that term. Without Follow, End
	// must be set.
	PinnedTerm wal.Term

	DialOptions []grpc.DialOption // as in Config
	Connections *Connections      // as in Config
	Logger      *zap.Logger       // nil logs nothing
}

// Chunk is a run of a log's bytes, written in one term.
type Chunk struct {
	wal.Chunk
	Term wal.Term
	// Commit is what the acceptor knew to be committed when it sent the chunk.
	Commit wal.LSN
}

// Reader reads a timeline's committed bytes, in order and without a gap. When
// an acceptor fails, falls silent or falls behind, it goes on with another one.
// It is not safe for concurrent use.
type Reader struct {
	config      ReaderConfig
	connections *Connections
	logger      *zap.Logger
	found       discovery

	sources  []*readSource // in the order in which they are tried next
	life     context.Context
	end      context.CancelFunc
	at       wal.LSN // end of what Next has returned
	progress bool    // the source at hand has brought something
	refused  int     // sources in a row that will not serve this position
	closed   bool
}

const (
	// silenceMax is how long a source may send nothing; a follower hears something every 5 s.
	silenceMax = 15 * time.Second
	readPause  = 200 * time.Millisecond // after every source has failed
)

// NewReader finds the members of the timeline. ctx bounds that; it is kept for
// nothing else.
func NewReader(ctx context.Context, c ReaderConfig) (*Reader, error) {
	checked, err := Config{Acceptors: c.Acceptors, Timeline: c.Timeline, DialOptions: c.DialOptions, Connections: c.Connections, Logger: c.Logger}.complete()
	if err != nil {
		return nil, err
	}
	if c.PinnedTerm != 0 && c.End == 0 && !c.Follow {
		return nil, errors.New("config: a pinned read needs an end")
	}
	r := &Reader{config: c, connections: c.Connections, logger: checked.Logger, at: c.Begin}
	r.life, r.end = context.WithCancel(context.Background())
	if r.connections == nil {
		r.connections = NewConnections(c.DialOptions...)
	}
	found, err := discover(ctx, r.question())
	if err != nil {
		r.Close()
		return nil, err
	}
	r.found = found
	if c.End == 0 && !c.Follow {
		r.config.End = max(found.commit, c.Begin)
	}
	for node, addr := range found.addrs {
		r.sources = append(r.sources, &readSource{node: node, addr: addr, cancel: func() {}})
	}
	// The one that knows most comes first.
	slices.SortFunc(r.sources, func(x, y *readSource) int {
		if a, b := found.commits[x.node], found.commits[y.node]; a != b {
			if a > b {
				return -1
			}
			return 1
		}
		return int(x.node) - int(y.node)
	})
	return r, nil
}

// Position is the end of what Next has returned.
func (r *Reader) Position() wal.LSN { return r.at }

// End is where the reader stops; 0 = never.
func (r *Reader) End() wal.LSN { return r.config.End }

// Next returns the bytes that follow, checked against their checksum. The
// result is the caller's. At the end the error is io.EOF. Sources that do not
// answer are tried again until ctx ends; then Next may be called again. If
// every member says that it will not serve this position (it was trimmed, the
// bytes are damaged, the term is another one) the error is of the last of them.
func (r *Reader) Next(ctx context.Context) (Chunk, error) {
	for {
		switch {
		case r.closed:
			return Chunk{}, ErrClosed
		case r.config.End != 0 && r.at >= r.config.End:
			return Chunk{}, io.EOF
		case ctx.Err() != nil:
			return Chunk{}, r.explain(ctx.Err())
		}
		s := r.sources[0]
		chunk, err := r.receive(ctx, s)
		if err == nil {
			r.at, r.progress, r.refused, s.err = chunk.End(), true, 0, nil
			return chunk, nil
		}
		if ctx.Err() != nil {
			continue
		}
		if err := r.moveOn(ctx, err); err != nil {
			return Chunk{}, err
		}
	}
}

// moveOn turns to another source after the one at hand failed with err.
func (r *Reader) moveOn(ctx context.Context, err error) error {
	s := r.sources[0]
	s.drop()
	if e := proto.FromStatus(err); e != nil {
		err = e
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("has nothing more that may be read")
		if r.progress {
			err = nil // that was all it had when it was asked
		}
	}
	s.err = err
	r.logger.Debug("reading from another acceptor", zap.Uint64("node", uint64(s.node)), zap.Stringer("at", r.at), zap.Error(err))
	if final(err) {
		if r.refused++; r.refused == len(r.sources) {
			return MemberError{s.node, s.addr, err}
		}
	} else {
		r.refused = 0
	}
	r.sources = append(append(r.sources[:0:0], r.sources[1:]...), s)
	rest := !r.progress && r.sources[0].err != nil // all have failed
	r.progress = false
	if rest {
		select {
		case <-time.After(readPause):
		case <-ctx.Done():
		}
	}
	return nil
}

// final reports whether a source that says err will say the same again.
func final(err error) bool {
	var e *consensus.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Reason {
	case proto.ReasonTrimmed, proto.ReasonCorrupt, proto.ReasonPinnedTerm, proto.ReasonNotFound,
		consensus.ReasonWrongTimeline, consensus.ReasonQuarantined, consensus.ReasonLost, consensus.ReasonProtocol:
		return true
	}
	return false
}

// receive returns the next bytes of s, opening a read first if there is none.
func (r *Reader) receive(ctx context.Context, s *readSource) (Chunk, error) {
	if s.stream == nil {
		if err := s.open(r); err != nil {
			return Chunk{}, err
		}
	}
	defer context.AfterFunc(ctx, s.cancel)()
	for {
		silence := time.AfterFunc(silenceMax, s.cancel)
		in, err := s.stream.Recv()
		silence.Stop()
		if ctx.Err() != nil {
			s.drop()
			return Chunk{}, ctx.Err()
		}
		if err != nil {
			return Chunk{}, err
		}
		if len(in.GetData()) == 0 {
			// Nothing new for a while. Others may know more.
			if r.behind(ctx) {
				return Chunk{}, errors.New("others know more to be committed")
			}
			continue
		}
		chunk, err := checkChunk(in, r.at)
		if err == nil && r.config.End != 0 && chunk.End() > r.config.End {
			err = fmt.Errorf("sent bytes up to %v, asked for were those below %v", chunk.End(), r.config.End)
		}
		return Chunk{chunk, wal.Term(in.GetTerm()), wal.LSN(in.GetCommitLsn())}, err
	}
}

// behind reports whether another member knows bytes beyond the position to be committed.
func (r *Reader) behind(ctx context.Context) bool {
	var addrs []string
	for _, s := range r.sources[1:] {
		addrs = append(addrs, s.addr)
	}
	return slices.ContainsFunc(askAll(ctx, r.question(), addrs), func(a testimony) bool {
		return a.err == nil && a.creation == r.found.creation && a.commit > r.at
	})
}

// explain says what keeps the sources from serving.
func (r *Reader) explain(err error) error {
	var list []MemberError
	for _, s := range r.sources {
		if s.err != nil {
			list = append(list, MemberError{s.node, s.addr, s.err})
		}
	}
	if len(list) == 0 {
		return err
	}
	return fmt.Errorf("%w at %v: %s", err, r.at, joinMembers(list))
}

// Close ends the reader. It may be called more than once.
func (r *Reader) Close() error {
	r.closed = true
	r.end()
	if r.config.Connections == nil {
		return r.connections.Close()
	}
	return nil
}

func (r *Reader) question() *question {
	return &question{r.config.Acceptors, r.config.Timeline, r.connections}
}
