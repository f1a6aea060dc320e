package logsink

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// BenchmarkLongMessage: the time must grow as the message does.
func BenchmarkLongMessage(b *testing.B) {
	for _, size := range []int{1_000_000, 10_000_000} {
		text := strings.Repeat("all é work ", size/12+1)[:size]
		b.Run(fmt.Sprintf("stderr/%d", size), func(b *testing.B) {
			s := NewSink(io.Discard, 64<<20)
			defer closeNow(b, s)
			logEach(b, s, text)
		})
		for _, limit := range []int{128, 1024} {
			b.Run(fmt.Sprintf("syslog-%d/%d", limit, size), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "log")
				server, err := net.ListenPacket("unixgram", path)
				if err != nil {
					b.Fatal(err)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					buf := make([]byte, 64<<10)
					for {
						if _, _, err := server.ReadFrom(buf); err != nil {
							return
						}
					}
				}()
				s, err := Syslog("unix://"+path, SyslogOptions{BytesMax: limit, Buffer: 64 << 20})
				if err != nil {
					b.Fatal(err)
				}
				logEach(b, s, text)
				closeNow(b, s)
				_ = server.Close()
				<-done
			})
		}
	}
}

// logEach logs text and waits until it has been written, again and again.
func logEach(b *testing.B, s *Sink, text string) {
	logger := zap.New(New(zapcore.InfoLevel, JSON, s))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		logger.Info(text)
		for s.Sync() != nil {
		}
	}
	if s.DroppedLines() != 0 {
		b.Fatal("lines were dropped")
	}
}

func closeNow(b *testing.B, s *Sink) {
	if err := s.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkWrite(b *testing.B) {
	s := NewSink(io.Discard, 0)
	defer closeNow(b, s)
	line := []byte(strings.Repeat("x", 199) + "\n")
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = s.Write(line)
	}
}

func BenchmarkSplit(b *testing.B) {
	for _, size := range []int{1_000_000, 10_000_000} {
		text := []byte(strings.Repeat("é", size/2))
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var h packetHead
			var packet []byte
			b.SetBytes(int64(size))
			for b.Loop() {
				for p := range split(text, 128) {
					packet = h.append(packet[:0], p)
				}
			}
		})
	}
}

func BenchmarkCollect(b *testing.B) {
	for _, size := range []int{200, 3_800, 64_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			line := strings.Repeat("x", size-1) + "\n"
			text := strings.Repeat(line, 10<<20/size)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := Collect(strings.NewReader(text), func([]byte, bool) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
