package flush

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeLog writes down what is asked of it.
type fakeLog struct {
	mu    sync.Mutex
	calls []string
	space []Space // answers, then SpaceOpen
	fail  string  // the call that fails
	data  []byte
	quiet bool // do not write calls down
}

func (f *fakeLog) Space(frames, bytes int) Space {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.space) == 0 {
		return SpaceOpen
	}
	s := f.space[0]
	f.space = f.space[1:]
	return s
}

func (f *fakeLog) call(name, detail string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.quiet {
		f.calls = append(f.calls, name+detail)
	}
	if f.fail == name {
		return errors.New("input/output error")
	}
	return nil
}

func (f *fakeLog) SaveState(st *wal.State, end wal.LSN) error {
	return f.call("state", fmt.Sprintf(" term %d end %v", st.Term, end))
}

func (f *fakeLog) Append(term wal.Term, commit wal.LSN, chunks []wal.Chunk, seal bool) error {
	if f.quiet {
		return nil
	}
	for _, c := range chunks {
		f.data = append(f.data, c.Data...)
	}
	s := ""
	if seal {
		s = " seal"
	}
	return f.call("append", fmt.Sprintf(" %d at %v%s", len(chunks), chunks[0].Begin, s))
}

func (f *fakeLog) Seal() error { return f.call("seal", "") }

func (f *fakeLog) Sync() error { return f.call("sync", "") }

func (f *fakeLog) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := strings.Join(f.calls, ", ")
	f.calls = nil
	return s
}

// fakeStream writes down what it is sent.
type fakeStream struct {
	mu     sync.Mutex
	sent   []string
	err    *consensus.Error
	broken error // what Send returns
	hold   chan struct{}
	cut    chan struct{}
	quiet  bool
}

func (s *fakeStream) Send(m consensus.Message) error {
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-s.cut:
			return errors.New("cancelled")
		}
	}
	if s.quiet {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := m.(type) {
	case *consensus.AcceptorGreeting:
		s.sent = append(s.sent, fmt.Sprintf("greeting %v", m.Health))
	case *consensus.VoteResponse:
		s.sent = append(s.sent, fmt.Sprintf("vote %d %v", m.Term, m.Granted))
	case *consensus.AppendResponse:
		s.sent = append(s.sent, fmt.Sprintf("ack %v commit %v", m.Flush, m.Commit))
	}
	return s.broken
}

func (s *fakeStream) End(err *consensus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		panic("ended twice")
	}
	s.err = err
}

func (s *fakeStream) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut != nil {
		close(s.cut)
		s.cut = nil
	}
}

func (s *fakeStream) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := strings.Join(s.sent, ", ")
	s.sent = nil
	return out
}

func (s *fakeStream) reason() consensus.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return ""
	}
	return s.err.Reason
}

const firstLSN = wal.LSN(0x1000)

var (
	timeline = wal.TimelineID{Tenant: "t", Timeline: "l"}
	members  = wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	creation = wal.CreationID{1}
)

// newWorld is a loop over a log, a fresh acceptor, and a clock that counts calls.
func newWorld(log Log, change func(*Config)) *Loop {
	acc := consensus.NewAcceptor(
		consensus.AcceptorConfig{Node: 1, Timeline: timeline, RequestBytesMax: wal.RequestBytesMax, WindowBytes: 64 << 20},
		wal.State{Creation: creation, FirstLSN: firstLSN, Membership: members, Commit: firstLSN, Horizon: firstLSN}, firstLSN, wal.Healthy)
	var now int64
	var mu sync.Mutex
	c := Config{Acceptor: acc, Log: log, Pool: NewPool(64 << 20), InboxBytes: 16 << 20, Clock: func() int64 {
		mu.Lock()
		defer mu.Unlock()
		now++
		return now
	}}
	if change != nil {
		change(&c)
	}
	return NewLoop(c)
}

// lead opens a stream that has won term.
func lead(t testing.TB, l *Loop, s Stream, term wal.Term, turn func()) *Lane {
	t.Helper()
	lane := l.Open(s)
	for _, m := range []consensus.Message{
		&consensus.Greeting{Version: consensus.Version, Timeline: timeline, Creation: creation, Proposer: wal.ProposerID{byte(term)}, Connection: 1, Membership: members},
		&consensus.VoteRequest{Generation: 1, Term: term},
		&consensus.Elected{Generation: 1, Term: term, Resume: firstLSN, History: wal.History{{Term: term, LSN: firstLSN}}},
	} {
		put(t, lane, m)
		turn()
	}
	return lane
}

func put(t testing.TB, l *Lane, m consensus.Message) {
	t.Helper()
	if err := l.Put(m); err != nil {
		t.Fatalf("put %T: %v", m, err)
	}
}

func request(term wal.Term, begin wal.LSN, data string) *consensus.AppendRequest {
	return &consensus.AppendRequest{Generation: 1, Term: term, Begin: begin, Commit: begin, CRC: wal.Checksum([]byte(data)), Data: []byte(data)}
}

// turns turns the loop until nothing is left to do.
func turns(l *Loop) (outcomes []Outcome) {
	for {
		o := l.Turn()
		outcomes = append(outcomes, o)
		if o != Done {
			return outcomes
		}
	}
}
