package logsink

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Format is how a line looks.
type Format string

// Formats.
const (
	JSON    Format = "json"    // one JSON object per line
	Console Format = "console" // tab-separated, for a person
)

// ParseFormat accepts "json" and "console".
func ParseFormat(s string) (Format, error) {
	switch f := Format(s); f {
	case JSON, Console:
		return f, nil
	}
	return "", fmt.Errorf("log format %q: expected json or console", s)
}

// New makes a zap core that writes entries of level and above to sink. Times
// are UTC with microseconds, durations are seconds. It also teaches the sink how to
// say what it has dropped; so a sink has one core.
func New(level zapcore.LevelEnabler, format Format, sink *Sink) zapcore.Core {
	encoder := newEncoder(format)
	sink.mu.Lock()
	defer sink.mu.Unlock()
	sink.notice = noticeOf(encoder.Clone(), sink.syslog != nil)
	if sink.syslog != nil {
		return &syslogCore{LevelEnabler: level, encoder: encoder, sink: sink}
	}
	return zapcore.NewCore(encoder, sink, level)
}

// noticeOf makes the line that says what has been dropped.
func noticeOf(encoder zapcore.Encoder, record bool) func(lines, bytes uint64) []byte {
	return func(lines, bytes uint64) []byte {
		entry := zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Now(), Message: "log lines dropped: the reader of the log was too slow"}
		text, err := encoder.EncodeEntry(entry, []zapcore.Field{zap.Uint64("dropped_lines", lines), zap.Uint64("dropped_bytes", bytes)})
		if err != nil {
			return nil
		}
		defer text.Free()
		if record {
			return appendRecord(nil, entry, text.Bytes())
		}
		return slices.Clone(text.Bytes())
	}
}

func newEncoder(format Format) zapcore.Encoder {
	c := zapcore.EncoderConfig{
		TimeKey:       "ts",
		LevelKey:      "level",
		NameKey:       "logger",
		MessageKey:    "msg",
		StacktraceKey: "stack",
		LineEnding:    "\n",
		EncodeLevel:   zapcore.LowercaseLevelEncoder,
		EncodeTime: func(t time.Time, to zapcore.PrimitiveArrayEncoder) {
			to.AppendString(t.UTC().Format("2006-01-02T15:04:05.000000Z"))
		},
		EncodeDuration: zapcore.SecondsDurationEncoder,
	}
	if format == Console {
		return zapcore.NewConsoleEncoder(c)
	}
	return zapcore.NewJSONEncoder(c)
}
