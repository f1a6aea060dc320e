package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
)

const (
	lockFile       = "LOCK"
	scrubStepBytes = 1 << 20
)

// offline scrubs the timelines at or below dir.
func (s *scrubber) offline(ctx context.Context, dir string, rate int64) error {
	dir = filepath.Clean(dir)
	dirs, err := segmentDirs(dir)
	if err != nil {
		return err
	}
	lock, err := lockDataDir(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	begin, read := time.Now(), int64(0)
	for _, d := range dirs {
		// What was put aside is damaged, and what is being made is not there yet.
		if base := filepath.Base(d); d != dir && strings.Contains(base, ".") && !strings.HasSuffix(base, storage.FilledSuffix) {
			continue
		}
		x := scrubDir(d, func(bytes int64) error {
			s.read.Add(uint64(bytes))
			read += bytes
			return pace(ctx, begin, read, cmp.Or(rate, scrubRate))
		})
		if err := ctx.Err(); err != nil {
			return err
		}
		s.add(x)
	}
	if len(s.report.Copies) == 0 {
		return cli.Errorf(cli.NotFound, "there are no segments under %s", dir)
	}
	return nil
}

// lockDataDir keeps acceptors from the data directory that dir is or lies in:
// what is being written cannot be judged from outside.
func lockDataDir(dir string) (io.Closer, error) {
	for up := range 3 {
		root := filepath.Join(dir, strings.Repeat("../", up))
		name := filepath.Join(root, lockFile)
		if _, err := os.Stat(name); err != nil {
			continue
		}
		lock, err := vfs.OS{}.Lock(name)
		if errors.Is(err, vfs.ErrLocked) {
			return nil, fmt.Errorf("an acceptor is using %s: ask it with holdfast scrub --acceptors", root)
		}
		return lock, err
	}
	return io.NopCloser(nil), nil
}

// scrubDir scrubs one timeline's directory. read is told of the bytes as they
// are read, and an error of it ends the scrub.
func scrubDir(dir string, read func(int64) error) *scrubbed {
	x := &scrubbed{Where: dir, Timeline: filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)}
	log, err := storage.OpenReadOnly(storage.Config{FS: vfs.OS{}, Dir: dir})
	var corrupt *storage.CorruptionError
	if errors.As(err, &corrupt) {
		for _, d := range corrupt.Damage {
			x.add(d)
		}
	} else if err != nil {
		x.err = err
	}
	if log == nil {
		return x
	}
	defer log.Close(nil)
	scrubber := log.NewScrubber()
	defer scrubber.Close()
	for {
		n, found, done, err := scrubber.Step(scrubStepBytes)
		x.Bytes += uint64(n)
		for _, d := range found {
			x.add(d)
		}
		if err == nil {
			err = read(n)
		}
		if err != nil || done {
			x.err = err
			return x
		}
	}
}

func (x *scrubbed) add(d storage.Damage) {
	y := damageOf(d.Begin, d.End, d.File, uint64(d.Offset), d.Reason)
	for _, z := range x.Damage {
		if z.File == y.File && z.Offset == y.Offset && z.Reason == y.Reason {
			return // it was found at opening and again
		}
	}
	x.Damage = append(x.Damage, y)
}
