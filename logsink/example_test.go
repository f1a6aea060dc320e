package logsink_test

import (
	"context"
	"os"
	"time"

	"github.com/seed7f3f3bb8/holdfast/logsink"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A process opens its sink first and closes it last.
func Example() {
	sink, err := logsink.Stderr(0)
	if err != nil {
		os.Exit(1)
	}
	logger := zap.New(logsink.New(zapcore.InfoLevel, logsink.JSON, sink))
	logger.Info("serving", zap.String("addr", "127.0.0.1:7000"))

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = sink.Close(ctx)
}
