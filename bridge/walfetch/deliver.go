package walfetch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// deliver writes a file of exactly size bytes, what fill does not write being
// zeroes, so that target is either absent, or whole and durable.
func deliver(target string, size int64, fill func(write func([]byte) error) error) (outcome Outcome, err error) {
	temp := target + ".holdfast.tmp"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return Failed, err
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(temp)
		}
	}()
	written := int64(0)
	err = fill(func(b []byte) error {
		if written += int64(len(b)); written > size {
			return fmt.Errorf("%s: more than %d bytes came", target, size)
		}
		_, err := f.Write(b)
		return err
	})
	if err == nil && written < size {
		err = f.Truncate(size) // reads as zeroes: nothing stale lies beyond the end
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(temp, target)
	}
	if err == nil {
		err = syncDir(filepath.Dir(target))
	}
	if err != nil {
		return Failed, err
	}
	return Delivered, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
