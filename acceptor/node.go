package acceptor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// Node is one acceptor process's worth of timelines. Its life is New, Serve
// (in as many goroutines as there are listeners), Shutdown.
type Node struct {
	cfg     Config
	log     *zap.Logger
	started time.Time

	dir      *dataDir
	spares   *storage.Spares // nil: there are none
	registry *registry
	absences absences
	opened   openedSet
	hot      hotSet

	pool     *flush.Pool
	janitor  *flush.Janitor
	preparer *preparer
	gossip   *gossip
	healers  chan struct{} // a place for each log that is opened again
	menders  chan struct{} // a place for each damaged log that is repaired by itself
	readers  chan struct{} // a place for each Read

	server *grpc.Server
	health *health.Server

	draining   atomic.Bool
	stop       context.CancelFunc
	background sync.WaitGroup // keeper, janitor, gossip, scrub, healers, menders
	streams    sync.WaitGroup // receivers
	shut       sync.Once
	shutErr    error
}

// healersMax is how many poisoned logs are opened again at a time, mendersMax
// how many damaged ones are written anew.
const (
	healersMax = 4
	mendersMax = 1
)

// New opens a data directory and gets ready to serve. It opens no timeline.
// The directory is this process's until Shutdown.
func New(cfg Config) (*Node, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	dir, err := openDataDir(cfg.FS, cfg.DataDir, cfg.NodeID)
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, log: cfg.Log, started: time.Now(), dir: dir,
		registry: newRegistry(), hot: hotSet{max: cfg.LogsHotMax},
		pool:    flush.NewPool(cfg.InboxBytesNode),
		healers: make(chan struct{}, healersMax), menders: make(chan struct{}, mendersMax), readers: make(chan struct{}, cfg.ReadersMax),
	}
	if err := n.find(); err != nil {
		return nil, errors.Join(err, dir.close())
	}
	n.janitor = flush.NewJanitor(n.pool)
	n.preparer = newPreparer(cfg.Preparers)
	n.gossip = newGossip(n)
	n.register()

	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.background.Go(func() { n.janitor.Run(ctx) })
	n.background.Go(func() { n.keep(ctx) })
	n.background.Go(func() { n.gossip.run(ctx) })
	n.background.Go(func() { n.scrubAll(ctx) })
	return n, nil
}

// find lists the timelines and sees to the spare segments.
func (n *Node) find() error {
	ids, filled, err := n.dir.timelines()
	if err != nil {
		return fmt.Errorf("cannot list the timelines in %s: %w", n.cfg.DataDir, err)
	}
	for _, id := range ids {
		n.registry.put(newTimeline(n, id))
	}
	for _, id := range filled {
		t := newTimeline(n, id)
		t.filled.Store(true) // also where there is another directory under its own name
		n.registry.put(t)
	}
	if n.cfg.SpareSegments < 0 {
		return nil
	}
	n.spares, err = storage.NewSpares(n.cfg.FS, path.Join(n.cfg.DataDir, spareName), n.cfg.FirstSegmentBytes)
	if err != nil {
		return err
	}
	if err := n.spares.Fill(n.cfg.SpareSegments); storage.IsNoSpace(err) {
		n.log.Warn("the disk is full: not all spare segments could be made", zap.Error(err))
	} else if err != nil {
		return err
	}
	return nil
}

// register makes the gRPC server.
func (n *Node) register() {
	options := append(proto.ServerOptions(), grpc.WaitForHandlers(true))
	n.server = grpc.NewServer(append(options, n.cfg.ServerOptions...)...)
	holdfastv1.RegisterAcceptorServiceServer(n.server, &acceptorService{node: n})
	holdfastv1.RegisterAdminServiceServer(n.server, &adminService{node: n})
	n.health = health.NewServer()
	for name := range n.server.GetServiceInfo() {
		n.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	healthv1.RegisterHealthServer(n.server, n.health)
	reflection.Register(n.server)
}

// Serve answers on l until Shutdown, which makes it return nil.
func (n *Node) Serve(l net.Listener) error {
	n.log.Info("serving", zap.Uint64("node", uint64(n.cfg.NodeID)), zap.Stringer("addr", l.Addr()), zap.Int("timelines", n.registry.len()))
	if err := n.server.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil // Shutdown came first
}

// Shutdown leaves in order: health says NOT_SERVING, new streams are refused,
// what was received is performed and answered, every log is proved by a last
// state frame and closed, and every stream ends with DRAINING. When ctx ends,
// what is not done by then is left as kill -9 would leave it, and the error says
// so. It may be called more than once.
func (n *Node) Shutdown(ctx context.Context) error {
	n.shut.Do(func() { n.shutErr = n.shutdown(ctx) })
	return n.shutErr
}

func (n *Node) shutdown(ctx context.Context) error {
	n.draining.Store(true)
	n.health.Shutdown()
	n.stop()
	soon, cancel := context.WithTimeout(ctx, closeSoon)
	err := n.closeAll(soon)
	cancel()
	n.stopServer(ctx)
	if err != nil {
		err = n.closeAll(ctx) // nobody can keep a loop from its end by not reading any more
	}
	n.preparer.close()
	n.gossip.close()
	wait(ctx, &n.background)
	wait(ctx, &n.streams)
	n.log.Info("left", zap.Error(err))
	return errors.Join(err, n.dir.close())
}

const (
	closeSoon      = 2 * time.Second // how long closing may take while clients are still there
	serverStopTime = time.Second     // how long calls may take to end after their timelines were closed
	closeParallel  = 32              // logs closed at a time: each writes and syncs once
)

// closeAll closes every open timeline.
func (n *Node) closeAll(ctx context.Context) error {
	for {
		list := n.opened.list()
		if len(list) == 0 {
			return nil
		}
		var mu sync.Mutex
		var all error
		var group sync.WaitGroup
		places := make(chan struct{}, closeParallel)
		for _, t := range list {
			places <- struct{}{}
			group.Go(func() {
				defer func() { <-places }()
				t.mu.Lock()
				defer t.mu.Unlock()
				if err := t.closeLocked(ctx, drainingError); err != nil {
					mu.Lock()
					all = errors.Join(all, err)
					mu.Unlock()
				}
			})
		}
		group.Wait()
		if all != nil {
			return all
		}
	}
}

// stopServer lets calls end by themselves for a moment and then ends them.
func (n *Node) stopServer(ctx context.Context) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.server.GracefulStop()
	}()
	timer := time.NewTimer(serverStopTime)
	defer timer.Stop()
	select {
	case <-stopped:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	go n.server.Stop()
	select {
	case <-stopped:
	case <-ctx.Done():
	}
}

func wait(ctx context.Context, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		group.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// now is the node's clock: nanoseconds since it began.
func (n *Node) now() int64 { return int64(time.Since(n.started)) }

func (n *Node) inboxWaited(nanos int64) { n.cfg.Metrics.InboxWaitSeconds.Observe(seconds(nanos)) }
