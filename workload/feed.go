package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"sync/atomic"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// SegmentFiles are PostgreSQL's WAL segment files in a directory: one TLI, one
// size, without a gap.
type SegmentFiles struct {
	TLI   pgwal.TLI
	Size  pgwal.SegmentBytes
	Begin wal.LSN // of the first file
	End   wal.LSN // of the last file
	dir   string
}

// OpenSegmentFiles looks at a directory of segment files. Other files in it are
// not looked at.
func OpenSegmentFiles(dir string) (*SegmentFiles, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	s := &SegmentFiles{dir: dir}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || len(e.Name()) != 24 || !info.Mode().IsRegular() {
			continue
		}
		size := pgwal.SegmentBytes(info.Size())
		if int64(size) != info.Size() || size.Validate() != nil {
			return nil, fmt.Errorf("%s has %d bytes, which is no size of a segment file", filepath.Join(dir, e.Name()), info.Size())
		}
		if _, _, err := size.ParseFileName(e.Name()); err != nil {
			continue
		}
		if s.Size != 0 && size != s.Size {
			return nil, fmt.Errorf("segment files of %v and of %v in %s", s.Size, size, dir)
		}
		s.Size = size
		names = append(names, e.Name())
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: no PostgreSQL segment files in %s", os.ErrNotExist, dir)
	}
	sort.Strings(names)
	for i, name := range names {
		tli, begin, err := s.Size.ParseFileName(name)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.TLI, s.Begin, s.End = tli, begin, begin
		}
		if tli != s.TLI {
			return nil, fmt.Errorf("segment files of TLI %d and of TLI %d in %s; give a directory with one", s.TLI, tli, dir)
		}
		if begin != s.End {
			return nil, fmt.Errorf("%s begins at %v, but the file before it ends at %v: one is missing", name, begin, s.End)
		}
		s.End = begin + wal.LSN(s.Size)
	}
	return s, nil
}

// read fills b from position at on; it stops at the end of a file.
func (s *SegmentFiles) read(at wal.LSN, b []byte) (int, error) {
	offset := s.Size.Offset(at)
	f, err := os.Open(filepath.Join(s.dir, s.Size.FileName(s.TLI, at)))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n := min(len(b), int(s.Size)-offset)
	if _, err := io.ReadFull(io.NewSectionReader(f, int64(offset), int64(n)), b[:n]); err != nil {
		return 0, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return n, nil
}

// Feed streams segment files into a log at their own positions. Appends are
// not waited for one by one: the appender's window holds the reader back.
type Feed struct {
	Files *SegmentFiles
	Until wal.LSN // end of the valid WAL; 0 = end of the last file
	Chunk int     // bytes an append carries at most
	Acks  *AckLog // nil: nothing is recorded

	BytesPerSecond int // no faster than that on average; 0 = as fast as it goes
}

// FeedMeter counts what a feed has done so far. It may be read while it runs.
type FeedMeter struct {
	Sent  atomic.Uint64 // position up to which bytes were given to the appender
	Acked atomic.Uint64 // position up to which they are committed
}

// feedAcksAhead bounds how many appends wait for their acknowledgement.
const feedAcksAhead = 4096

type fed struct {
	begin, end wal.LSN
	crc        uint32
}

// Run feeds from at, where the log ends now, to the end, and returns when all
// of it is committed. A feed that was interrupted goes on by running again.
func (f *Feed) Run(ctx context.Context, to Appender, at wal.LSN, m *FeedMeter) error {
	until := f.Until
	if until == 0 {
		until = f.Files.End
	}
	if until > f.Files.End {
		return fmt.Errorf("the segment files end at %v, before %v", f.Files.End, until)
	}
	if at > until {
		return fmt.Errorf("the log ends at %v already, behind %v: it holds something else, or more", at, until)
	}
	if at < f.Files.Begin {
		return fmt.Errorf("the log ends at %v, but the segment files begin at %v", at, f.Files.Begin)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan fed, feedAcksAhead)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f.acknowledge(ctx, to, queue, m); err != nil {
			cancel(err)
		}
	}()
	err := f.send(ctx, to, at, until, queue, m)
	close(queue)
	if err != nil {
		cancel(err)
	}
	<-done
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return ctx.Err()
}

func (f *Feed) send(ctx context.Context, to Appender, at, until wal.LSN, queue chan<- fed, m *FeedMeter) error {
	buffer := make([]byte, f.Chunk)
	began, first := time.Now(), at
	for at < until {
		if f.BytesPerSecond > 0 {
			due := began.Add(time.Duration(float64(at-first) / float64(f.BytesPerSecond) * float64(time.Second)))
			if !waitUntil(ctx, due) {
				return context.Cause(ctx)
			}
		}
		n, err := f.Files.read(at, buffer[:min(f.Chunk, int(until-at))])
		if err != nil {
			return err
		}
		data := buffer[:n]
		crc := wal.Checksum(data)
		begin, end, err := to.Append(ctx, data)
		if err != nil {
			return err
		}
		if begin != at {
			return fmt.Errorf("the log went on at %v, not at %v: something else writes to it", begin, at)
		}
		at = end
		m.Sent.Store(uint64(at))
		select {
		case queue <- fed{begin, end, crc}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// waitUntil waits; false if ctx ended first.
func waitUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *Feed) acknowledge(ctx context.Context, to Appender, queue <-chan fed, m *FeedMeter) error {
	for x := range queue {
		if err := to.Wait(ctx, x.end); err != nil {
			return err
		}
		m.Acked.Store(uint64(x.end))
		if f.Acks != nil {
			if err := f.Acks.Raw(x.begin, x.end, x.crc); err != nil {
				return err
			}
		}
	}
	return nil
}
