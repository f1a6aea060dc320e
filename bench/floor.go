package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// The floor is the least that this disk can be asked for: three files that are
// written already, each with one writer that takes what waits, writes it with
// one pwrite and makes it durable with one fdatasync. An append is done when two
// of them hold it. No network, no frames, no checksums, no votes.

const (
	floorReplicas  = 3
	floorQuorum    = 2
	floorFileBytes = 256 << 20
	floorBatchMax  = 4 << 20
	floorQueueMax  = 1024 // appends; a file that lags holds the clients back
)

// floorAppend is one append on its way.
type floorAppend struct {
	data    []byte
	holders atomic.Int32 // files that hold it
	refs    atomic.Int32 // files that have not let go of it
	done    chan struct{}
}

var floorAppends = sync.Pool{New: func() any { return &floorAppend{done: make(chan struct{}, 1)} }}

// floorFile is one replica.
type floorFile struct {
	file  *os.File
	at    int64
	batch []byte
	syncs atomic.Int64

	mu     sync.Mutex
	work   sync.Cond
	room   sync.Cond
	queue  []*floorAppend
	closed bool
}

func openFloorFile(path string) (*floorFile, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	zeroes := make([]byte, 1<<20)
	for at := int64(0); at < floorFileBytes && err == nil; at += int64(len(zeroes)) {
		_, err = f.WriteAt(zeroes, at)
	}
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	x := &floorFile{file: f, batch: make([]byte, 0, floorBatchMax)}
	x.work.L, x.room.L = &x.mu, &x.mu
	return x, nil
}

func (f *floorFile) put(a *floorAppend) {
	f.mu.Lock()
	for len(f.queue) >= floorQueueMax {
		f.room.Wait()
	}
	f.queue = append(f.queue, a)
	f.mu.Unlock()
	f.work.Signal()
}

// run writes until the file is closed.
func (f *floorFile) run() error {
	var taken []*floorAppend
	for {
		f.mu.Lock()
		for len(f.queue) == 0 && !f.closed {
			f.work.Wait()
		}
		if len(f.queue) == 0 {
			f.mu.Unlock()
			return f.file.Close()
		}
		n, bytes := 0, 0
		for n < len(f.queue) && (n == 0 || bytes+len(f.queue[n].data) <= floorBatchMax) {
			bytes += len(f.queue[n].data)
			n++
		}
		taken = append(taken[:0], f.queue[:n]...)
		f.queue = append(f.queue[:0], f.queue[n:]...)
		f.mu.Unlock()
		f.room.Broadcast()

		f.batch = f.batch[:0]
		for _, a := range taken {
			f.batch = append(f.batch, a.data...)
		}
		if f.at+int64(len(f.batch)) > floorFileBytes {
			f.at = 0 // written blocks are what makes it fast
		}
		if _, err := f.file.WriteAt(f.batch, f.at); err != nil {
			return err
		}
		if err := unix.Fdatasync(int(f.file.Fd())); err != nil {
			return err
		}
		f.syncs.Add(1)
		f.at += int64(len(f.batch))
		for _, a := range taken {
			if a.holders.Add(1) == floorQuorum {
				a.done <- struct{}{}
			}
			if a.refs.Add(-1) == 0 {
				floorAppends.Put(a)
			}
		}
	}
}

func (f *floorFile) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.work.Signal()
}

// floor is the three files as something that load can be put on.
type floor struct {
	files [floorReplicas]*floorFile
	end   atomic.Uint64
}

// Append implements workload.Appender: it returns when the append is durable.
func (x *floor) Append(_ context.Context, data []byte) (begin, end wal.LSN, err error) {
	a := floorAppends.Get().(*floorAppend)
	a.data = data
	a.holders.Store(0)
	a.refs.Store(floorReplicas + 1)
	for _, f := range x.files {
		f.put(a)
	}
	<-a.done
	if a.refs.Add(-1) == 0 {
		floorAppends.Put(a)
	}
	end = wal.LSN(x.end.Add(uint64(len(data))))
	return end - wal.LSN(len(data)), end, nil
}

// Wait implements workload.Appender.
func (x *floor) Wait(context.Context, wal.LSN) error { return nil }

func (x *floor) syncs() (float64, error) {
	var n int64
	for _, f := range x.files {
		n += f.syncs.Load()
	}
	return float64(n), nil
}

// floorCell measures one cell in a directory of its own.
func floorCell(ctx context.Context, dir string, s cellSpec) (row, error) {
	// A goroutine in fdatasync keeps its P for a while. With one P per core the
	// clients would wait for it.
	runtime.GOMAXPROCS(floorReplicas + runtime.NumCPU())
	var x floor
	var writers sync.WaitGroup
	failed := make(chan error, floorReplicas)
	for i := range x.files {
		f, err := openFloorFile(filepath.Join(dir, fmt.Sprintf("floor-%d", i)))
		if err != nil {
			return row{}, err
		}
		x.files[i] = f
	}
	settle()
	for _, f := range x.files {
		writers.Go(func() { failed <- f.run() })
	}
	probe := &fleet.Probe{Servers: []int{os.Getpid()}, Replicas: floorReplicas, Syncs: x.syncs}
	load := s.load()
	load.Began, load.Ended = probe.Begin, probe.End
	var meter workload.Meter
	result, err := load.Drive(ctx, &x, &meter)
	for _, f := range x.files {
		f.close()
	}
	writers.Wait()
	for range x.files {
		err = errors.Join(err, <-failed)
	}
	result.System = "floor"
	return row{LoadResult: result, Cost: probe.Cost(result.Ops, s.payload)}, err
}

func floorMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("floor", flag.ExitOnError)
	g := addGrid(fs)
	_ = fs.Parse(args)
	return g.each(func(s cellSpec, dir string) error {
		r, err := floorCell(ctx, dir, s)
		if err != nil {
			return err
		}
		return r.print(os.Stdout)
	})
}
