package crashimage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// neighbour writes, renames and removes files of its own on the same file
// system until ctx ends, mostly without a flush: so there is always something
// on its way to the disk when the power fails, the journal's blocks included.
func neighbour(ctx context.Context, dir string, rng *rand.Rand) error {
	dir = filepath.Join(dir, "Neighbour") // no tenant's name
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data := make([]byte, 64<<10)
	for n := 0; ctx.Err() == nil; n++ {
		for i := range data[:512] {
			data[i] = byte(rng.Uint32())
		}
		name := filepath.Join(dir, fmt.Sprint(n%8))
		f, err := os.Create(name + ".new")
		if err != nil {
			return err
		}
		_, err = f.Write(data[:1+rng.IntN(len(data))])
		if err == nil && rng.IntN(10) == 0 {
			err = f.Sync()
		} else if err == nil {
			err = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
		}
		if e := f.Close(); err == nil {
			err = e
		}
		if err == nil && rng.IntN(3) > 0 {
			err = os.Rename(name+".new", name)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rng.IntN(5000)) * time.Microsecond):
		}
	}
	return nil
}
