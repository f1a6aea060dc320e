package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/bridge/walserver"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/metrics"
)

// walserverFlags are the settings of "walserver".
type walserverFlags struct {
	clientFlags
	listen, http string
	users        string
	trust        bool
	cert, key    string
	requireTLS   bool
	slots        string
	connections  int
	log          logFlags
	stdin        bool
}

func newWALServer(a *app) *cobra.Command {
	var f walserverFlags
	cmd := &cobra.Command{
		Use:   "walserver",
		Short: "Serve a log's committed WAL to stock standbys and pg_receivewal",
		Long: `Serve a PostgreSQL's log, as far as it is committed, over PostgreSQL's own
replication protocol: a standby's primary_conninfo, or pg_receivewal, may point here.

--users names a file with lines role:verifier, where the verifier is what
PostgreSQL keeps in pg_authid.rolpassword (SCRAM-SHA-256$...). Without it
everyone may connect, which is allowed on loopback only, or with --trust.`,
		Example: `  holdfast walserver --acceptors a:7001,b:7001,c:7001 --timeline prod/main --listen 127.0.0.1:5433
  holdfast walserver --acceptors a:7001,b:7001,c:7001 --timeline prod/main --listen 0.0.0.0:5433 --users users.txt --tls-cert c.pem --tls-key k.pem --require-tls`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a) },
	}
	f.addTimelineTo(cmd, true)
	f.log.addTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:5433", "where to serve PostgreSQL's protocol")
	flags.StringVar(&f.http, "http", "", "where to serve /metrics, /livez and /readyz; empty = nowhere")
	flags.StringVar(&f.users, "users", "", "file with the roles that may connect")
	flags.BoolVar(&f.trust, "trust", false, "let everyone connect, also from elsewhere")
	flags.StringVar(&f.cert, "tls-cert", "", "certificate to offer TLS with, PEM")
	flags.StringVar(&f.key, "tls-key", "", "its key, PEM")
	flags.BoolVar(&f.requireTLS, "require-tls", false, "refuse connections without TLS")
	flags.StringVar(&f.slots, "slots-file", "", "file that keeps replication slots across restarts")
	flags.IntVar(&f.connections, "connections-max", 100, "connections at a time")
	flags.BoolVar(&f.stdin, "until-stdin-closes", false, "leave when standard input ends: no child outlives its parent")
	_ = flags.MarkHidden("until-stdin-closes")
	cli.CommandLineOnly(cmd, "until-stdin-closes")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	return cmd
}

func (f *walserverFlags) run(ctx context.Context, a *app) error {
	logger, _, closeLog, err := f.log.open()
	if err != nil {
		return err
	}
	defer closeLog()
	q, err := f.openQuorum(quorum.Config{Logger: logger})
	if err != nil {
		return err
	}
	defer q.Close()
	c := walserver.Config{Source: q, RequireTLS: f.requireTLS, SlotsFile: f.slots, ConnectionsMax: f.connections, Logger: logger}
	if err := f.access(&c); err != nil {
		return cli.WithCode(cli.Usage, err)
	}
	registry := prometheus.NewRegistry()
	counters, err := metrics.NewBridge(registry)
	if err != nil {
		return err
	}
	c.Observer = walObserver{counters}
	s, err := walserver.New(c)
	if err != nil {
		return cli.WithCode(cli.Usage, err)
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
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
	web, err := (&acceptorFlags{http: f.http}).serveHTTP(metrics.Handler(metrics.HandlerOptions{Gatherer: registry, Ready: func() []string { return readable(ctx, q) }}), failed)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if web != nil {
		defer web.Close()
	}
	go func() { failed <- s.Serve(l) }()
	logger.Info("serving WAL", zap.Stringer("address", l.Addr()), zap.Stringer("timeline", f.timeline.TimelineID))
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	return errors.Join(err, s.Close())
}

// access reads who may connect and how.
func (f *walserverFlags) access(c *walserver.Config) error {
	if f.users != "" {
		file, err := os.Open(f.users)
		if err != nil {
			return err
		}
		defer file.Close()
		if c.Users, err = walserver.ReadUsers(file); err != nil {
			return errors.Join(errors.New(f.users), err)
		}
	} else if host, _, err := net.SplitHostPort(f.listen); err != nil || !f.trust && !isLoopback(host) {
		return errors.Join(err, errors.New("name the roles that may connect with --users, or say --trust: --listen "+f.listen+" can be reached from elsewhere"))
	}
	if f.cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return err
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// readable says why the log cannot be served now.
func readable(ctx context.Context, q *quorum.Quorum) []string {
	ctx, cancel := context.WithTimeout(ctx, questionWait)
	defer cancel()
	v, err := q.View(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	if !v.Written {
		return []string{"no PostgreSQL has written the timeline yet"}
	}
	return nil
}

// walObserver counts what standbys get.
type walObserver struct{ *metrics.Bridge }

func (o walObserver) Streaming(change int) { o.Standbys.Add(float64(change)) }
func (o walObserver) Sent(bytes int)       { o.StandbySentBytes.Add(float64(bytes)) }
