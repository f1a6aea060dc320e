package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// diskConfig is the configuration of production, on a real directory.
func diskConfig(t testing.TB, fsys vfs.FS) Config {
	return Config{FS: fsys, Dir: filepath.Join(t.TempDir(), "tenant", "timeline")}
}

func newDiskLog(t testing.TB, cfg Config) *Log {
	t.Helper()
	must(t, Create(cfg, testState()))
	return reopen(t, cfg)
}

// One batch is one write call and one fdatasync, and nothing else, whatever is
// in it and also where a segment begins or ends.
func TestOneWriteOneSyncPerBatch(t *testing.T) {
	fault := vfs.NewFault(vfs.OS{})
	cfg := diskConfig(t, fault)
	l := newDiskLog(t, cfg)
	data := make([]byte, 400<<10)
	for i, sizes := range [][]int{{1}, {8, 9, 10}, {8192, 100, 8192}, {400 << 10}, {1}, {400 << 10}, {2048, 2049}} {
		var chunks []wal.Chunk
		at, total := l.WriteLSN(), 0
		for _, n := range sizes {
			chunks = append(chunks, wal.Chunk{Begin: at, CRC: wal.Checksum(data[:n]), Data: data[:n]})
			at += wal.LSN(n)
			total += n
		}
		for l.Space(len(sizes), total) != wal.SpaceOpen {
			must(t, l.Prepare())
			if l.Space(len(sizes), total) == wal.SpaceNext {
				must(t, l.Seal())
				must(t, l.Sync())
			}
		}
		fault.ResetCounts()
		must(t, l.Append(1, 0x1000, chunks, false))
		must(t, l.Sync())
		if w, s, all := fault.Count(vfs.OpWritevAt), fault.Count(vfs.OpDatasync), fault.Count(vfs.OpAll); w != 1 || s != 1 || all != 2 {
			t.Errorf("batch %d: %d writes, %d syncs, %d operations in all", i, w, s, all)
		}
	}
}

// An append allocates nothing once buffers have grown.
func TestAppendDoesNotAllocate(t *testing.T) {
	l := newDiskLog(t, diskConfig(t, vfs.OS{}))
	small, large := make([]byte, 128), make([]byte, 8192)
	chunks := make([]wal.Chunk, 0, 8)
	round := func() {
		chunks = chunks[:0]
		at := l.WriteLSN()
		for _, d := range [][]byte{small, large, small, small} {
			chunks = append(chunks, wal.Chunk{Begin: at, CRC: wal.Checksum(d), Data: d})
			at += wal.LSN(len(d))
		}
		if l.Space(4, 8192+3*128) != wal.SpaceOpen {
			t.Fatal("the test does not want to switch segments")
		}
		must(t, l.Append(1, 0x1000, chunks, false))
		must(t, l.Sync())
	}
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
}

// A writer, its background, readers and a scrubber at the same time. Run with -race.
func TestConcurrentUse(t *testing.T) {
	cfg := testConfig(vfs.NewMem())
	l := newLog(t, cfg)
	const batches = 600
	var done atomic.Bool
	var group sync.WaitGroup
	work := func(f func() error) {
		group.Add(1)
		go func() {
			defer group.Done()
			for !done.Load() {
				if err := f(); err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
					return
				}
				runtime.Gosched()
			}
		}()
	}
	work(func() error { return errors.Join(l.Prepare(), l.Reclaim()) })
	for range 3 {
		work(func() error {
			r := l.NewReader(l.OldestLSN())
			defer r.Close()
			for {
				f, err := r.Next(EndUnknown)
				var trimmed *TrimmedError
				switch {
				case err == io.EOF || errors.As(err, &trimmed):
					return nil
				case err != nil:
					return err
				case !bytes.Equal(f.Chunk.Data, pattern(1, f.Chunk.Begin, len(f.Chunk.Data))):
					return fmt.Errorf("wrong bytes at %v", f.Chunk.Begin)
				}
			}
		})
	}
	s := l.NewScrubber()
	work(func() error {
		_, damage, _, err := s.Step(3000)
		if len(damage) > 0 {
			err = fmt.Errorf("damage: %v", damage)
		}
		return err
	})
	work(func() error {
		_, _, _, _ = l.State(), l.Segments(), l.NeedsPrepare(), l.Bytes()
		return nil
	})
	for i := range batches {
		size := 1 + i*37%1500
		for l.Space(1, size) != wal.SpaceOpen {
			if l.Space(1, size) == wal.SpaceNext {
				must(t, l.Seal())
				must(t, l.Sync())
			}
			runtime.Gosched()
		}
		must(t, l.Append(1, 0x1000, []wal.Chunk{chunk(1, l.WriteLSN(), size)}, false))
		must(t, l.Sync())
		if i%50 == 49 && l.Space(0, 0) == wal.SpaceOpen {
			st := l.State()
			st.Commit = l.FlushLSN()
			st.Horizon = st.Commit - 5000
			must(t, l.Trim(&st, st.Horizon))
		}
		if i%100 == 99 {
			l.Idle()
		}
	}
	done.Store(true)
	group.Wait()
	must(t, s.Close())
	must(t, l.Close(nil))
	must(t, l.Close(nil))
}

// Close ends the readers of a log.
func TestCloseEndsReaders(t *testing.T) {
	l := newLog(t, testConfig(vfs.NewMem()))
	write(t, l, 1, 100)
	r := l.NewReader(0x1000)
	_, err := r.Next(EndUnknown)
	must(t, err)
	must(t, l.Close(nil))
	if _, err := r.Next(EndUnknown); !errors.Is(err, ErrClosed) {
		t.Fatalf("reading a closed log: %v", err)
	}
	must(t, r.Close())
	if _, err := l.NewReader(0).Next(1); !errors.Is(err, ErrClosed) {
		t.Fatalf("reading a closed log: %v", err)
	}
}
