package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// acceptorFlags are the settings of "acceptor".
type acceptorFlags struct {
	nodeID   uint64
	listen   string
	http     string
	dataDir  string
	log      logFlags
	pprof    bool
	stdin    bool
	timeline []string

	inbox, inboxNode, window   cli.Bytes
	batchBytes                 cli.Bytes
	batchRequests              int
	segment, firstSegment      cli.Bytes
	spares, preparers, readers int
	logsHot                    int
	retain                     cli.Bytes
	closeIdleAfter             time.Duration
	scrubRate                  cli.Bytes
	scrubEvery                 time.Duration
	autoRepair                 bool
	procs                      int
}

func newAcceptor(a *app) *cobra.Command {
	f := acceptorFlags{
		inbox: acceptor.InboxBytesDefault, inboxNode: acceptor.InboxBytesNodeDefault, window: acceptor.WindowBytesDefault,
		scrubRate: acceptor.ScrubBytesPerSecondDefault, batchBytes: 0, segment: 64 << 20, firstSegment: 1 << 20,
	}
	cmd := &cobra.Command{
		Use:   "acceptor",
		Short: "Run an acceptor: store, vote, acknowledge",
		Long: `Run one acceptor. A node id belongs to one data directory for ever. SIGTERM makes
it answer what it has received and leave in under five seconds.`,
		Example: `  holdfast acceptor --node-id 1 --listen 10.0.0.1:7001 --http 127.0.0.1:7080 --data-dir /var/lib/holdfast
  HOLDFAST_NODE_ID=2 holdfast acceptor --data-dir /srv/holdfast --retain-bytes 100GiB`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a) },
	}
	flags := cmd.Flags()
	flags.Uint64Var(&f.nodeID, "node-id", 0, "this acceptor's number, from 1, different on each")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:7001", "where to serve gRPC")
	flags.StringVar(&f.http, "http", "127.0.0.1:7080", "where to serve /metrics, /livez and /readyz; empty = nowhere")
	flags.StringVar(&f.dataDir, "data-dir", "", "where the logs are kept; made if it is not there")
	_ = cmd.MarkFlagRequired("node-id")
	_ = cmd.MarkFlagRequired("data-dir")
	f.log.addTo(cmd)

	flags.Var(&f.inbox, "inbox-bytes", "what one timeline may have received and not yet written")
	flags.Var(&f.inboxNode, "inbox-bytes-node", "the same of all timelines together")
	flags.Var(&f.window, "window-bytes", "what a proposer may leave unacknowledged on a stream")
	flags.Var(&f.batchBytes, "max-batch-bytes", "the most that one fdatasync covers (default: as much as there is, within reason)")
	flags.IntVar(&f.batchRequests, "max-batch-requests", 0, "the most requests that one fdatasync covers; 1 = one flush per request, 0 = no limit")
	flags.Var(&f.segment, "segment-bytes", "size that segment files grow to")
	flags.Var(&f.firstSegment, "first-segment-bytes", "size of a timeline's first segment file")
	flags.IntVar(&f.spares, "spare-segments", acceptor.SpareSegmentsDefault, "segments kept for votes on a full disk; 0 or -1 = none")
	flags.Var(&f.retain, "retain-bytes", "how much of each timeline is kept, never less than the horizon asks for; 0 = all")
	flags.IntVar(&f.preparers, "preparers", acceptor.PreparersDefault, "segments made ahead at a time")
	flags.IntVar(&f.readers, "readers-max", acceptor.ReadersMaxDefault, "readers at a time")
	flags.IntVar(&f.logsHot, "logs-hot-max", 0, "logs that hold descriptors; 0 = an eighth of the limit on descriptors")
	flags.DurationVar(&f.closeIdleAfter, "close-idle-after", acceptor.CloseIdleAfterDefault, "how long a timeline stays open that nobody uses")
	flags.Var(&f.scrubRate, "scrub-bytes-per-second", "how fast everything on the disk is read and verified in the background; 0 = not at all")
	flags.DurationVar(&f.scrubEvery, "scrub-every", acceptor.ScrubEveryDefault, "least time from the begin of one such pass to the next")
	flags.BoolVar(&f.autoRepair, "auto-repair", true, "repair damaged copies from peers without being asked")
	flags.StringSliceVar(&f.timeline, "timeline-metrics", nil, "timelines that /metrics shows one by one, comma-separated")
	flags.IntVar(&f.procs, "max-procs", 0, "processors that may be used at a time; fewer save work where acceptors share a machine; 0 = all")
	flags.BoolVar(&f.pprof, "pprof", false, "serve /debug/pprof/ on the HTTP port")
	flags.BoolVar(&f.stdin, "until-stdin-closes", false, "leave when standard input ends: no child outlives its parent")
	_ = flags.MarkHidden("until-stdin-closes")
	cli.CommandLineOnly(cmd, "until-stdin-closes")
	f.limit(cmd)
	return cmd
}

// Bounds of settings that take memory or disk.
const (
	segmentBytesMin = 1 << 20 // takes the largest request and the state reserve
	segmentBytesMax = 1 << 30
	bufferBytesMin  = 1 << 20 // takes a few of the largest requests
	sparesMax       = 1000    // they are made, with zeroes, before the node serves
	preparersMax    = 64
)

// limit refuses what could not work, or would be taken for something else.
func (f *acceptorFlags) limit(cmd *cobra.Command) {
	cli.AtLeast(cmd, "node-id", &f.nodeID, 1)
	cli.AtLeast(cmd, "inbox-bytes", &f.inbox, bufferBytesMin)
	cli.AtLeast(cmd, "inbox-bytes-node", &f.inboxNode, bufferBytesMin)
	cli.AtLeast(cmd, "window-bytes", &f.window, bufferBytesMin)
	cli.AtLeast(cmd, "max-batch-requests", &f.batchRequests, 0)
	cli.Between(cmd, "segment-bytes", &f.segment, segmentBytesMin, segmentBytesMax)
	cli.Between(cmd, "first-segment-bytes", &f.firstSegment, segmentBytesMin, segmentBytesMax)
	cli.Between(cmd, "spare-segments", &f.spares, -1, sparesMax)
	cli.Between(cmd, "preparers", &f.preparers, 1, preparersMax)
	cli.AtLeast(cmd, "readers-max", &f.readers, 1)
	cli.AtLeast(cmd, "logs-hot-max", &f.logsHot, 0)
	cli.AtLeast(cmd, "close-idle-after", &f.closeIdleAfter, time.Second)
}

// shutdownWait is how long leaving may take: it is promised in under five seconds.
const shutdownWait = 4500 * time.Millisecond

func (f *acceptorFlags) run(ctx context.Context, a *app) error {
	if f.procs > 0 {
		runtime.GOMAXPROCS(f.procs)
	}
	logger, sink, closeLog, err := f.log.open()
	if err != nil {
		return err
	}
	defer closeLog()
	registry := prometheus.NewRegistry()
	build := readBuildInfo()
	if err := metrics.NewProcess(registry, metrics.Build{Version: build.Version, Revision: build.Revision}, sink); err != nil {
		return err
	}
	config, err := f.config(logger, registry, build.Version)
	if err != nil {
		return err
	}
	// The ports first: an address that is taken is noticed before a lock is.
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	node, err := acceptor.New(config)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := metrics.NewAcceptorState(registry, node.State); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.stdin {
		go func() {
			_, _ = io.Copy(io.Discard, a.In)
			cancel()
		}()
	}
	failed := make(chan error, 2)
	go func() { failed <- node.Serve(listener) }()
	web, err := f.serveHTTP(metrics.Handler(metrics.HandlerOptions{Gatherer: registry, Ready: node.NotReady, Pprof: f.pprof}), failed)
	if err == nil {
		select {
		case err = <-failed:
		case <-ctx.Done():
			logger.Info("asked to leave")
		}
	}
	soon, done := context.WithTimeout(context.WithoutCancel(ctx), shutdownWait)
	defer done()
	err = errors.Join(err, node.Shutdown(soon))
	if web != nil {
		_ = web.Close() // last, so that a probe learns why it is not ready while it drains
	}
	return err
}

func (f *acceptorFlags) config(logger *zap.Logger, registry *prometheus.Registry, version string) (acceptor.Config, error) {
	counters, err := metrics.NewAcceptor(registry, acceptor.Reasons())
	if err != nil {
		return acceptor.Config{}, err
	}
	c := acceptor.Config{
		NodeID: wal.NodeID(f.nodeID), DataDir: f.dataDir, Log: logger, Metrics: counters, Version: version,
		InboxBytes: int(f.inbox), InboxBytesNode: int(f.inboxNode), WindowBytes: int(f.window),
		BatchBytesMax: int(f.batchBytes), BatchRequestsMax: f.batchRequests,
		SegmentBytes: int64(f.segment), FirstSegmentBytes: int64(f.firstSegment), SpareSegments: f.spares,
		RetainBytes: uint64(f.retain), Preparers: f.preparers, ReadersMax: f.readers, LogsHotMax: f.logsHot,
		CloseIdleAfter: f.closeIdleAfter, ScrubBytesPerSecond: int64(f.scrubRate), ScrubEvery: f.scrubEvery, ManualRepair: !f.autoRepair,
	}
	if f.scrubRate == 0 {
		c.ScrubBytesPerSecond = -1 // 0 would be the default
	}
	switch {
	case f.segment < f.firstSegment:
		return c, cli.Errorf(cli.Usage, "--segment-bytes %v is less than --first-segment-bytes %v: segments only grow", f.segment, f.firstSegment)
	case f.segment%512 != 0 || f.firstSegment%512 != 0:
		return c, cli.Errorf(cli.Usage, "--segment-bytes %v, --first-segment-bytes %v: expected multiples of 512 bytes", f.segment, f.firstSegment)
	case f.inboxNode < f.inbox:
		return c, cli.Errorf(cli.Usage, "--inbox-bytes-node %v is less than the --inbox-bytes %v of one timeline", f.inboxNode, f.inbox)
	}
	if f.spares == 0 {
		c.SpareSegments = -1 // 0 would be the default
	}
	for _, name := range f.timeline {
		id, err := wal.ParseTimelineID(name)
		if err != nil {
			return c, cli.Errorf(cli.Usage, "--timeline-metrics: %w", err)
		}
		c.TimelineMetrics = append(c.TimelineMetrics, id)
	}
	return c, nil
}

// httpHeaderWait bounds how long a client may take to ask.
const httpHeaderWait = 5 * time.Second

func (f *acceptorFlags) serveHTTP(handler http.Handler, failed chan<- error) (*http.Server, error) {
	if f.http == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", f.http)
	if err != nil {
		return nil, err
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: httpHeaderWait}
	go func() {
		if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("HTTP: %w", err)
		}
	}()
	return web, nil
}
