package storage

import (
	"fmt"
	"io"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// nullFile takes writes and syncs at no cost, so that a benchmark sees our own.
type nullFile struct{ vfs.File }

func (nullFile) WritevAt([][]byte, int64) error { return nil }
func (nullFile) Datasync() error                { return nil }

func benchChunks(l *Log, chunks []wal.Chunk, data []byte, crc uint32) {
	at := l.WriteLSN()
	for i := range chunks {
		chunks[i] = wal.Chunk{Begin: at, CRC: crc, Data: data}
		at += wal.LSN(len(data))
	}
}

func benchAppend(b *testing.B, size, frames int, free bool) {
	cfg := diskConfig(b, vfs.OS{})
	cfg.FirstSegmentBytes = 64 << 20
	l := newDiskLog(b, cfg)
	data := make([]byte, size)
	crc := wal.Checksum(data)
	chunks := make([]wal.Chunk, frames)
	b.SetBytes(int64(size * frames))
	b.ReportAllocs()
	for b.Loop() {
		if free && l.Space(frames, size*frames) != wal.SpaceOpen {
			l.w.off = sectorBytes // nothing is there anyway
		}
		must(b, makeRoom(l, frames, size*frames))
		benchChunks(l, chunks, data, crc)
		if _, wrapped := l.w.file.(nullFile); free && l.w.file != nil && !wrapped {
			l.w.file = nullFile{l.w.file}
		}
		must(b, l.Append(1, 0, chunks, false))
		must(b, l.Sync())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*frames), "ns/append")
}

// BenchmarkAppend is batches to a real disk: its floor is the disk's.
func BenchmarkAppend(b *testing.B) {
	for _, c := range [][2]int{{128, 1}, {128, 64}, {8192, 1}, {8192, 64}, {65536, 16}} {
		b.Run(fmt.Sprintf("%dBx%d", c[0], c[1]), func(b *testing.B) { benchAppend(b, c[0], c[1], false) })
	}
}

// BenchmarkAppendCPU is the same to a file that costs nothing: what is ours.
func BenchmarkAppendCPU(b *testing.B) {
	for _, c := range [][2]int{{128, 1}, {128, 64}, {8192, 64}} {
		b.Run(fmt.Sprintf("%dBx%d", c[0], c[1]), func(b *testing.B) { benchAppend(b, c[0], c[1], true) })
	}
}

// filledLog is one full segment of frames of one size.
func filledLog(b *testing.B, size int) (*Log, Config) {
	cfg := diskConfig(b, vfs.OS{})
	cfg.FirstSegmentBytes = 64 << 20
	l := newDiskLog(b, cfg)
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7)
	}
	crc := wal.Checksum(data)
	chunks := make([]wal.Chunk, max(1, (1<<20)/size))
	for l.Space(len(chunks), len(chunks)*size) == wal.SpaceOpen {
		benchChunks(l, chunks, data, crc)
		must(b, l.Append(1, 0, chunks, false))
		must(b, l.Sync())
	}
	return l, cfg
}

// BenchmarkRecover is Open of a full 64 MiB segment in the page cache.
func BenchmarkRecover(b *testing.B) {
	for _, size := range []int{128, 8192, 262144} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			l, cfg := filledLog(b, size)
			must(b, l.Close(nil))
			b.SetBytes(64 << 20)
			for b.Loop() {
				l, err := Open(cfg)
				must(b, err)
				must(b, l.Close(nil))
			}
		})
	}
}

// BenchmarkRead reads a full 64 MiB segment in the page cache, in order.
func BenchmarkRead(b *testing.B) {
	for _, size := range []int{128, 8192, 262144} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			l, _ := filledLog(b, size)
			b.SetBytes(int64(l.FlushLSN() - l.OldestLSN()))
			b.ReportAllocs()
			for b.Loop() {
				r := l.NewReader(l.OldestLSN())
				for {
					_, err := r.Next(EndUnknown)
					if err == io.EOF {
						break
					}
					must(b, err)
				}
				must(b, r.Close())
			}
		})
	}
}

// BenchmarkPrepare makes a 64 MiB segment, zero-filled and synced.
func BenchmarkPrepare(b *testing.B) {
	cfg := diskConfig(b, vfs.OS{})
	cfg.FirstSegmentBytes = 64 << 20
	b.SetBytes(64 << 20)
	for b.Loop() {
		f, err := zeroFile(cfg.FS, b.TempDir(), "x", 64<<20, segmentHeader{size: 64 << 20})
		must(b, err)
		must(b, f.Close())
	}
}
