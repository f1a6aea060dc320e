package walserver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Source is the log that is served.
type Source interface {
	// View is a majority's answer; without a majority it is an error.
	View(ctx context.Context) (quorum.View, error)
	// Follow calls each with committed bytes from begin on, in order, and idle
	// when there is nothing new, until ctx ends or one of them fails.
	Follow(ctx context.Context, creation wal.CreationID, begin wal.LSN,
		each func(c wal.Chunk, term wal.Term) error, idle func(commit wal.LSN) error) error
}

// Config says what to serve and to whom.
type Config struct {
	Source Source

	// Users are the roles that may connect, by name, with what proves their
	// password. Nil lets everyone in.
	Users map[string]Verifier

	// TLS, if set, is offered; with RequireTLS nobody gets in without.
	TLS        *tls.Config
	RequireTLS bool

	// SlotsFile keeps slots across restarts; "" forgets them.
	SlotsFile string

	ConnectionsMax int           // 0 = 100
	Keepalive      time.Duration // how often an idle client is asked for a sign of life; 0 = 5 s

	Logger   *zap.Logger // nil = none
	Observer Observer    // nil = none
}

// Observer is told what a metric counts. Its methods must not block.
type Observer interface {
	Streaming(change int) // +1 when a client begins to stream, -1 when it ends
	Sent(bytes int)
}

type noObserver struct{}

func (noObserver) Streaming(int) {}
func (noObserver) Sent(int)      {}

const (
	connectionsDefault = 100
	keepaliveDefault   = 5 * time.Second
	startupTimeout     = 30 * time.Second // from connect to logged in
	writeTimeout       = 60 * time.Second // a client that takes nothing for so long is gone
	viewTimeout        = 5 * time.Second
)

// Server serves connections. Its life is New, Serve, Close.
type Server struct {
	config Config
	log    *zap.Logger
	slots  *slots

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	places chan struct{} // one per connection
	tasks  sync.WaitGroup
	lastID atomic.Uint32

	mu        sync.Mutex
	listeners map[net.Listener]bool // guarded by mu
}

// New makes a server.
func New(c Config) (*Server, error) {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
	if c.ConnectionsMax == 0 {
		c.ConnectionsMax = connectionsDefault
	}
	if c.Keepalive == 0 {
		c.Keepalive = keepaliveDefault
	}
	if c.RequireTLS && c.TLS == nil {
		return nil, errors.New("TLS is required of clients, but there is no certificate")
	}
	slots, err := openSlots(c.SlotsFile)
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, log: c.Logger, slots: slots, places: make(chan struct{}, c.ConnectionsMax), listeners: map[net.Listener]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Serve accepts connections on l until Close, which makes it return nil.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	s.listeners[l] = true
	s.mu.Unlock()
	if s.ctx.Err() != nil {
		return l.Close()
	}
	for {
		c, err := l.Accept()
		if err != nil {
			if s.ctx.Err() != nil {
				return nil
			}
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() {
				continue
			}
			return err
		}
		s.tasks.Go(func() { s.handle(c) })
	}
}

// Close ends every connection and waits for them.
func (s *Server) Close() error {
	s.cancel()
	s.mu.Lock()
	for l := range s.listeners {
		l.Close()
	}
	s.mu.Unlock()
	s.tasks.Wait()
	return s.slots.save()
}

func (s *Server) handle(raw net.Conn) {
	stop := context.AfterFunc(s.ctx, func() { raw.Close() })
	defer stop()
	defer raw.Close()
	id := s.lastID.Add(1)
	log := s.log.With(zap.Uint32("connection", id), zap.Stringer("client", raw.RemoteAddr()))
	c := &conn{server: s, id: id, raw: raw, log: log}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		c.full = true
	}
	if err := c.serve(s.ctx); err != nil && s.ctx.Err() == nil {
		log.Info("connection ended", zap.String("user", c.user), zap.Error(err))
	}
	s.slots.dropTemporary(id)
}
