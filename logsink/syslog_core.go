package logsink

import (
	"encoding/binary"
	"errors"
	"time"

	"go.uber.org/zap/zapcore"
)

// syslogCore hands entries to a sink whose writer speaks syslog. Unlike a line
// of text, such an entry carries its level and its time beside its text.
type syslogCore struct {
	zapcore.LevelEnabler
	encoder zapcore.Encoder
	sink    *Sink
}

func (c *syslogCore) With(fields []zapcore.Field) zapcore.Core {
	encoder := c.encoder.Clone()
	for _, f := range fields {
		f.AddTo(encoder)
	}
	return &syslogCore{LevelEnabler: c.LevelEnabler, encoder: encoder, sink: c.sink}
}

func (c *syslogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c *syslogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	text, err := c.encoder.EncodeEntry(entry, fields)
	if err != nil {
		return err
	}
	defer text.Free()
	if _, err := c.sink.Write(appendRecord(make([]byte, 0, recordHeaderBytes+text.Len()), entry, text.Bytes())); err != nil {
		return err
	}
	if entry.Level > zapcore.ErrorLevel { // the process may end now
		return c.sink.Sync()
	}
	return nil
}

func (c *syslogCore) Sync() error { return c.sink.Sync() }

// A record is how an entry stands in the sink's buffer:
//
//	4 bytes   length of the text
//	1 byte    severity
//	8 bytes   time, nanoseconds since 1970
//	text
const recordHeaderBytes = 4 + 1 + 8

func appendRecord(b []byte, entry zapcore.Entry, text []byte) []byte {
	for len(text) > 0 && text[len(text)-1] == '\n' {
		text = text[:len(text)-1]
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, severityOf(entry.Level))
	b = binary.LittleEndian.AppendUint64(b, uint64(entry.Time.UnixNano()))
	return append(b, text...)
}

// cutRecord takes the first record off b.
func cutRecord(b []byte) (severity byte, at time.Time, text, rest []byte, err error) {
	if len(b) < recordHeaderBytes {
		return 0, at, nil, nil, errors.New("short record")
	}
	n := binary.LittleEndian.Uint32(b)
	severity = b[4]
	at = time.Unix(0, int64(binary.LittleEndian.Uint64(b[5:]))).UTC()
	b = b[recordHeaderBytes:]
	if uint64(len(b)) < uint64(n) {
		return 0, at, nil, nil, errors.New("short record")
	}
	return severity, at, b[:n], b[n:], nil
}

// severityOf maps zap's levels to RFC 5424's severities.
func severityOf(l zapcore.Level) byte {
	switch {
	case l <= zapcore.DebugLevel:
		return 7 // debug
	case l == zapcore.InfoLevel:
		return 6 // informational
	case l == zapcore.WarnLevel:
		return 4 // warning
	case l == zapcore.ErrorLevel:
		return 3 // error
	}
	return 2 // critical
}
