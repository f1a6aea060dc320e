package walfetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Ahead is a directory with files that have been fetched before PostgreSQL
// asked for them. Only segments that are committed to their last byte get
// there: they never change, so one that is found needs no further question. It
// should be on the file system of pg_wal, so that a file is moved, not copied.
type Ahead struct {
	Dir   string
	Files int // how many segments to be ahead; 0 = none
	// Key tells logs apart that share the directory.
	Key string
}

const aheadPrefix = "holdfast-ahead-"

func (a Ahead) path(name string) string {
	return filepath.Join(a.Dir, aheadPrefix+strings.NewReplacer("/", "-").Replace(a.Key)+"-"+name)
}

// Take moves a file that is there to target, and reports whether it was.
func (a Ahead) Take(name, target string) (bool, error) {
	if a.Files <= 0 || len(name) != 24 {
		return false, nil
	}
	err := os.Rename(a.path(name), target)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EXDEV) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, syncDir(filepath.Dir(target))
}

// Fill fetches the segments that follow name, unless another process does so already.
func (a Ahead) Fill(ctx context.Context, f *Fetcher, name string) error {
	if a.Files <= 0 {
		return nil
	}
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(a.Dir, aheadPrefix+"lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil // another one is at it
	}
	v, err := f.Source.View(ctx)
	if err != nil {
		return err
	}
	size := v.Properties.Segment
	if size.Validate() != nil {
		return fmt.Errorf("no PostgreSQL has written this timeline yet")
	}
	tli, at, err := size.ParseFileName(name)
	if err != nil {
		return err
	}
	a.forget(size, tli, at)
	ancestry := v.Ancestry()
	i := ancestry.Find(tli)
	for range a.Files {
		at += wal.LSN(size)
		end := at + wal.LSN(size)
		if i < 0 || end > v.Commit {
			return nil
		}
		if stop, historic := ancestry.End(i); historic && end > stop {
			return nil
		}
		path := a.path(size.FileName(tli, at))
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if _, err := f.segment(ctx, v, part{begin: at, end: end, size: size}, path); err != nil {
			return err
		}
	}
	return nil
}

// forget removes segments that recovery has passed.
func (a Ahead) forget(size pgwal.SegmentBytes, tli pgwal.TLI, at wal.LSN) {
	entries, _ := os.ReadDir(a.Dir)
	own := filepath.Base(a.path(""))
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), own)
		if !ok {
			continue
		}
		if t, l, err := size.ParseFileName(name); err != nil || t < tli || l <= at {
			os.Remove(filepath.Join(a.Dir, e.Name()))
		}
	}
}

// Clear removes all that was fetched ahead for this log: recovery is at its end.
func (a Ahead) Clear() {
	entries, _ := os.ReadDir(a.Dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(a.path(""))) || e.Name() == aheadPrefix+"lock" {
			os.Remove(filepath.Join(a.Dir, e.Name()))
		}
	}
	os.Remove(a.Dir) // succeeds if it is empty
}

var _ Source = (*quorum.Quorum)(nil)
