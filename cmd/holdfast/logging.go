package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/logsink"
)

// logFlags are the log settings of a command that runs for long.
type logFlags struct {
	level  string
	format string
	syslog string
	packet cli.Bytes
	buffer cli.Bytes
}

func (f *logFlags) addTo(cmd *cobra.Command) {
	f.packet, f.buffer = 1<<10, logsink.BufferBytes
	cmd.Flags().StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	cmd.Flags().StringVar(&f.format, "log-format", "json", "json or console")
	cmd.Flags().StringVar(&f.syslog, "log-syslog", "", "send the log there instead of to standard error: unix:///dev/log, udp://HOST:PORT or tcp://HOST:PORT")
	cmd.Flags().Var(&f.packet, "log-syslog-bytes", "longest text of a syslog packet; what is longer is split")
	cmd.Flags().Var(&f.buffer, "log-buffer", "log lines that may wait for a slow reader; more are dropped and counted")
}

// logCloseWait is how long the last lines may take.
const logCloseWait = 500 * time.Millisecond

// open makes the logger. The last result writes out what is left and must be called.
func (f *logFlags) open() (*zap.Logger, *logsink.Sink, func(), error) {
	level, err := zapcore.ParseLevel(f.level)
	if err != nil {
		return nil, nil, nil, cli.Errorf(cli.Usage, "--log-level %q: expected debug, info, warn or error", f.level)
	}
	format, err := logsink.ParseFormat(f.format)
	if err != nil {
		return nil, nil, nil, cli.WithCode(cli.Usage, err)
	}
	var sink *logsink.Sink
	if f.syslog != "" {
		sink, err = logsink.Syslog(f.syslog, logsink.SyslogOptions{BytesMax: int(f.packet), AppName: "holdfast", Buffer: int(f.buffer)})
		err = cli.WithCode(cli.Usage, err)
	} else {
		sink, err = logsink.Stderr(int(f.buffer))
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("log: %w", err)
	}
	logger := zap.New(logsink.New(level, format, sink))
	return logger, sink, func() {
		ctx, cancel := context.WithTimeout(context.Background(), logCloseWait)
		defer cancel()
		_ = sink.Close(ctx) // what could not be written has nowhere else to go
	}, nil
}
