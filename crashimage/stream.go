package crashimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// client talks to one acceptor, message by message: a proposer that may do
// what no single run of the real one would.
type client struct {
	book *Book
	note func(any) // puts a promise into the disk's history
	conn *grpc.ClientConn
	node holdfastv1.AcceptorServiceClient
	adm  holdfastv1.AdminServiceClient

	connections uint64
}

func dial(addr string, book *Book, note func(any), options ...grpc.DialOption) (*client, error) {
	soon := backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond}
	options = append(append(proto.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: time.Second})), options...)
	conn, err := grpc.NewClient(addr, options...)
	if err != nil {
		return nil, err
	}
	return &client{book: book, note: note, conn: conn, node: holdfastv1.NewAcceptorServiceClient(conn), adm: holdfastv1.NewAdminServiceClient(conn)}, nil
}

var members = wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1, Addr: "127.0.0.1:1"}}}

func (c *client) create(ctx context.Context) error {
	_, err := c.adm.CreateTimeline(ctx, &holdfastv1.CreateTimelineRequest{
		Timeline: c.book.Timeline.String(), CreationId: proto.EncodeCreationID(c.book.Creation),
		FirstLsn: uint64(c.book.First), Membership: proto.EncodeMembership(members),
	})
	if err == nil {
		c.note(created{})
	}
	return err
}

// trim gives back what lies below before.
func (c *client) trim(ctx context.Context, before wal.LSN) error {
	c.note(trimming{before}) // before it is asked for: it may be done whatever is answered
	_, err := c.adm.TrimTimeline(ctx, &holdfastv1.TrimTimelineRequest{
		Timeline: c.book.Timeline.String(), CreationId: proto.EncodeCreationID(c.book.Creation), BeforeLsn: uint64(before),
	})
	return err
}

func (c *client) status(ctx context.Context) (*holdfastv1.TimelineStatus, error) {
	r, err := c.adm.GetTimeline(ctx, &holdfastv1.GetTimelineRequest{Timeline: c.book.Timeline.String()})
	return r.GetTimeline(), err
}

// stream is one proposer's stream. Send methods are for one goroutine;
// answers are taken in by another.
type stream struct {
	c      *client
	rpc    grpc.BidiStreamingClient[holdfastv1.ProposerMessage, holdfastv1.AcceptorMessage]
	cancel context.CancelFunc
	who    wal.ProposerID
	done   chan struct{} // the stream has ended

	fresh  atomic.Bool // the vote that is asked for is a new one
	votes  chan *consensus.VoteResponse
	greets chan *consensus.AcceptorGreeting

	mu       sync.Mutex
	progress chan struct{} // replaced whenever flush or commit moves
	term     wal.Term      // won
	flush    wal.LSN       // acknowledged in it
	commit   wal.LSN       // the acceptor's, as acknowledged in it
	saved    wal.LSN       // that much of it is saved
	appends  []appended    // not acknowledged, in order
	err      error         // why it ended
}

// appended is an append on its way: when it is durable, so is the commit that
// the acceptor had acknowledged before it was sent.
type appended struct{ end, commit wal.LSN }

// open greets as who.
func (c *client) open(ctx context.Context, who wal.ProposerID) (*stream, *consensus.AcceptorGreeting, error) {
	ctx, cancel := context.WithCancel(ctx)
	rpc, err := c.node.Append(ctx, grpc.WaitForReady(true))
	if err != nil {
		cancel()
		return nil, nil, err
	}
	s := &stream{
		c: c, rpc: rpc, cancel: cancel, who: who, done: make(chan struct{}), progress: make(chan struct{}),
		votes: make(chan *consensus.VoteResponse, 1), greets: make(chan *consensus.AcceptorGreeting, 1),
	}
	go s.receive()
	c.connections++
	s.send(&consensus.Greeting{
		Version: consensus.Version, Timeline: c.book.Timeline, Creation: c.book.Creation,
		Proposer: who, Connection: c.connections, Membership: members,
	})
	g, err := await(s, s.greets)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, g, nil
}

func (s *stream) receive() {
	defer close(s.done)
	var in proto.FromAcceptor
	for {
		if err := in.Receive(s.rpc); err != nil {
			s.mu.Lock()
			s.err = err
			s.mu.Unlock()
			return
		}
		switch m := in.Message().(type) {
		case *consensus.AcceptorGreeting:
			s.greets <- m
		case *consensus.VoteResponse:
			if m.Granted {
				n := voted{term: m.Term, who: s.who}
				if s.fresh.Load() {
					n.commit = m.Commit
				}
				s.c.note(n)
			}
			s.votes <- m
		case *consensus.AppendResponse:
			s.ack(m)
		}
	}
}

func (s *stream) ack(m *consensus.AppendResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Term != s.term || m.Flush == 0 {
		return // somebody else's term
	}
	for len(s.appends) > 0 && s.appends[0].end <= m.Flush {
		s.saved = max(s.saved, s.appends[0].commit)
		s.appends = s.appends[1:]
	}
	s.c.note(acked{m.Term, m.Flush, s.saved})
	s.flush, s.commit = max(s.flush, m.Flush), max(s.commit, m.Commit)
	close(s.progress)
	s.progress = make(chan struct{})
}

// send ignores that the stream has ended: whoever waits for the answer learns why.
func (s *stream) send(m consensus.Message) {
	_ = s.rpc.SendMsg(m)
}

// vote asks for the vote of term.
func (s *stream) vote(term wal.Term) (*consensus.VoteResponse, error) {
	s.fresh.Store(s.c.book.campaign(term, s.who))
	s.send(&consensus.VoteRequest{Generation: 1, Term: term})
	return await(s, s.votes)
}

// elect wins term for a log that holds what this acceptor does up to start.
func (s *stream) elect(v *consensus.VoteResponse, term wal.Term, start wal.LSN) error {
	kept := v.History
	for len(kept) > 0 && kept[len(kept)-1].LSN >= start {
		kept = kept[:len(kept)-1]
	}
	h := kept.Extend(term, start)
	resume, err := wal.Divergence(h, v.History, v.Flush)
	if err != nil {
		return err
	}
	if resume != start {
		return fmt.Errorf("the logs part at %v, expected %v", resume, start)
	}
	s.c.book.elect(term, h, resume)
	s.mu.Lock()
	s.term, s.flush, s.commit = term, 0, v.Commit
	s.mu.Unlock()
	s.send(&consensus.Elected{Generation: 1, Term: term, Resume: resume, History: h})
	s.heartbeat(v.Commit, v.Horizon) // Elected has no answer of its own
	return nil
}

// append sends n bytes and does not wait.
func (s *stream) append(at wal.LSN, n int, commit, horizon wal.LSN) wal.LSN {
	end := at + wal.LSN(n)
	s.c.book.sending(s.term, end)
	data := make([]byte, n)
	fill(data, s.c.book.Seed, s.term, at)
	s.mu.Lock()
	s.appends = append(s.appends, appended{end, s.commit})
	s.mu.Unlock()
	s.send(&consensus.AppendRequest{Generation: 1, Term: s.term, Begin: at, Commit: commit, Horizon: horizon, CRC: wal.Checksum(data), Data: data})
	return end
}

// heartbeat carries commit and horizon alone.
func (s *stream) heartbeat(commit, horizon wal.LSN) {
	s.send(&consensus.AppendRequest{Generation: 1, Term: s.term, Commit: commit, Horizon: horizon})
}

// acked waits until everything below flush is acknowledged, and commit too.
func (s *stream) acked(flush, commit wal.LSN) error {
	timer := time.NewTimer(answerWait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		ok, progress := s.flush >= flush && s.commit >= commit, s.progress
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-progress:
		case <-s.done:
			return s.why()
		case <-timer.C:
			return fmt.Errorf("%v is not acknowledged after %v", flush, answerWait)
		}
	}
}

// close ends the stream from this side, wherever it is.
func (s *stream) close() {
	s.cancel()
	<-s.done
}

// why is the reason for which the acceptor ended the stream.
func (s *stream) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := proto.FromStatus(s.err); e != nil {
		return e
	}
	if errors.Is(s.err, io.EOF) {
		return errors.New("the acceptor ended the stream without a reason")
	}
	return s.err
}

// answerWait bounds every wait for an acceptor.
const answerWait = 30 * time.Second

func await[M any](s *stream, answers <-chan M) (m M, err error) {
	timer := time.NewTimer(answerWait)
	defer timer.Stop()
	select {
	case m = <-answers:
		return m, nil
	case <-s.done:
		select { // it may have come before the end
		case m = <-answers:
			return m, nil
		default:
		}
		return m, s.why()
	case <-timer.C:
		return m, fmt.Errorf("no answer after %v", answerWait)
	}
}
