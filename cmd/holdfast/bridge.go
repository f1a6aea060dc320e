package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proposer"
)

// bridgeFlags are the settings of "bridge".
type bridgeFlags struct {
	clientFlags
	postgres postgresFlags
	log      logFlags
	http     string
	onFenced string
	window   cli.Bytes
	trust    bool
	unfence  bool
	check    bool
	asJSON   bool
	stdin    bool
}

func newBridge(a *app) *cobra.Command {
	f := bridgeFlags{window: 64 << 20}
	cmd := &cobra.Command{
		Use:   "bridge",
		Short: "Make a stock PostgreSQL's commits wait for a majority of the acceptors",
		Long: `Follow a stock PostgreSQL primary and write its WAL to the acceptors. With
synchronous_standby_names = 'holdfast' there, COMMIT returns when a majority of
the acceptors has flushed it. The bridge never changes PostgreSQL's settings;
--check reads them and says what is wrong or unsafe.

It goes on by itself after every fault that can pass. It leaves with exit code
7 when another one has taken the log over, or the log has left this server
behind, with 6 when this server's WAL is not the log's, and with 1 when someone
must change something.`,
		Example: `  holdfast bridge --postgres "host=10.0.0.5 user=holdfast" --acceptors a:7001,b:7001,c:7001 --timeline prod/main
  holdfast bridge --check --postgres "host=10.0.0.5 user=holdfast"
  holdfast bridge --postgres "host=/run/postgresql" --acceptors a:7001,b:7001,c:7001 --timeline prod/main --on-fenced 'pg_ctl stop -m immediate -D /srv/pg'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.check {
				return f.runCheck(cmd.Context(), a)
			}
			if len(f.acceptors) == 0 || f.timeline.String() == "" {
				return cli.Errorf(cli.Usage, "--acceptors and --timeline are needed, except with --check")
			}
			return f.run(cmd.Context(), a)
		},
	}
	flags := cmd.Flags()
	flags.Var(&f.acceptors, "acceptors", "where to ask, comma-separated")
	flags.Var(&f.timeline, "timeline", "which log, as tenant/name")
	f.postgres.addTo(cmd)
	f.log.addTo(cmd)
	flags.StringVar(&f.http, "http", "127.0.0.1:7090", "where to serve /metrics, /status, /livez and /readyz; empty = nowhere")
	flags.StringVar(&f.onFenced, "on-fenced", "", "shell command to run when another one has taken the log over; it should stop PostgreSQL")
	flags.Var(&f.window, "window-bytes", "bytes that may be on their way to the acceptors")
	flags.BoolVar(&f.trust, "trust", false, "attach although PostgreSQL has no WAL left that could be compared with the log")
	flags.BoolVar(&f.unfence, "unfence", false, "attach to a fenced log although this server does not come from a recovery of it")
	flags.BoolVar(&f.check, "check", false, "only say what is wrong or unsafe about PostgreSQL's settings")
	flags.BoolVar(&f.stdin, "until-stdin-closes", false, "leave when standard input ends: no child outlives its parent")
	_ = flags.MarkHidden("until-stdin-closes")
	for _, flag := range []string{"until-stdin-closes", "trust", "unfence"} {
		cli.CommandLineOnly(cmd, flag)
	}
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

func (f *bridgeFlags) run(ctx context.Context, a *app) error {
	logger, sink, closeLog, err := f.log.open()
	if err != nil {
		return err
	}
	defer closeLog()
	registry := prometheus.NewRegistry()
	build := readBuildInfo()
	counters, err1 := metrics.NewBridge(registry)
	writes, err2 := metrics.NewProposer(registry, acceptor.Reasons())
	err3 := metrics.NewProcess(registry, metrics.Build{Version: build.Version, Revision: build.Revision}, sink)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	q, err := f.openQuorum(quorum.Config{WindowBytes: int(f.window), Logger: logger, Metrics: writes})
	if err != nil {
		return err
	}
	defer q.Close()
	b := ingest.New(ingest.Config{
		Postgres: f.postgres.config(), Slot: f.postgres.slot, Log: q, Trust: f.trust, Unfence: f.unfence,
		OnFenced: func(ctx context.Context) { f.fenced(ctx, logger) },
		Logger:   logger, Observer: bridgeObserver{counters},
	})
	if err := metrics.NewBridgeState(registry, func() metrics.BridgeState { return bridgeState(b.Status()) }); err != nil {
		return err
	}
	web, err := serveBridgeHTTP(f.http, registry, b)
	if err != nil {
		return err
	}
	if web != nil {
		defer web.Close()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.stdin {
		go func() {
			_, _ = io.Copy(io.Discard, a.In)
			cancel()
		}()
	}
	return bridgeExit(b.Run(ctx))
}

// bridgeExit gives the bridge's ends their exit codes.
func bridgeExit(err error) error {
	var fenced *ingest.FencedError
	var refused *pgwal.RefusedError
	switch {
	case errors.As(err, &fenced):
		return cli.WithCode(cli.StaleTerm, err)
	case errors.As(err, &refused) && (refused.Refusal == pgwal.Stale || refused.Refusal == pgwal.Shut):
		return cli.WithCode(cli.StaleTerm, err)
	case errors.As(err, &refused) && refused.Refusal == pgwal.Foreign:
		return cli.WithCode(cli.Corruption, err)
	case errors.Is(err, proposer.ErrNotFound):
		return cli.WithCode(cli.NotFound, err)
	}
	return err
}

// onFencedWait bounds the hook.
const onFencedWait = time.Minute

func (f *bridgeFlags) fenced(ctx context.Context, logger *zap.Logger) {
	if f.onFenced == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, onFencedWait)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", f.onFenced).CombinedOutput()
	logger.Warn("ran --on-fenced", zap.String("command", f.onFenced), zap.ByteString("output", out), zap.Error(err))
}

// bridgeObserver counts what the bridge does.
type bridgeObserver struct{ *metrics.Bridge }

func (o bridgeObserver) Received(bytes int) {
	o.ReceivedMessages.Inc()
	o.ReceivedBytes.Add(float64(bytes))
}

func (o bridgeObserver) Stage(stage string, d time.Duration) {
	if stage == ingest.StageReply {
		o.Replies.Inc()
	}
	o.StageSeconds.Observe(metrics.BridgeStage(stage), d)
}

func (o bridgeObserver) Reconnected(reason string) { o.Reconnects.Inc(upstreamReason(reason)) }

// bridgeState is a status as the metrics want it: what is not known is negative.
func bridgeState(s ingest.Status) metrics.BridgeState {
	bytes := func(v *uint64) int64 {
		if v == nil {
			return -1
		}
		return int64(*v)
	}
	out := metrics.BridgeState{
		UpstreamConnected: s.UpstreamUp, LastMessageAge: -1, SlotRetainedBytes: bytes(s.SlotRetained),
		FeedbackLagBytes: bytes(s.FeedbackLag), PostgresTimeline: int64(s.TLI), Protection: metrics.Protection(s.Protection),
	}
	if s.MessageAge != nil {
		out.LastMessageAge = time.Duration(*s.MessageAge * float64(time.Second))
	}
	if s.TLI == 0 {
		out.PostgresTimeline = -1
	}
	return out
}

func serveBridgeHTTP(addr string, registry *prometheus.Registry, b *ingest.Bridge) (*http.Server, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(b.Status())
	})
	mux.Handle("/", metrics.Handler(metrics.HandlerOptions{Gatherer: registry, Ready: func() []string {
		if ready, why := b.Ready(); !ready {
			return []string{why}
		}
		return nil
	}}))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: httpHeaderWait}
	go web.Serve(l) //nolint:errcheck // it ends with Close
	return web, nil
}
