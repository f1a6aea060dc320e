// Package logsink is where log lines go without ever holding anybody up.
//
// A [Sink] is a zapcore.WriteSyncer with a bounded buffer and one goroutine
// that writes. A caller copies its line into the buffer and goes on; when the
// reader of the log is slower than the log, lines are dropped, counted, and
// the log itself says how many as soon as it moves again. So a paused terminal, a
// full pipe or a dead syslog never stalls a write-ahead log.
//
// [Stderr] opens the usual sink, [Syslog] one that speaks RFC 5424, [NewSink]
// one for any writer; [New] makes the zap core on top of it. [Pipe] and
// [Collect] are the other end: they gather the logs of child processes.
package logsink
