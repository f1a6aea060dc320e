package workload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Export writes a range of a log as PostgreSQL segment files. Bytes outside the
// range are zeroes. A file gets its name only when it is whole and synced.
// Chunk must be called with contiguous bytes, then Close.
type Export struct {
	dir  string
	tli  pgwal.TLI
	size pgwal.SegmentBytes
	at   wal.LSN

	file *os.File // nil between segments
	name string   // its final path
	made []string
}

// partialSuffix marks a segment file that is being written.
const partialSuffix = ".partial"

// NewExport begins an export at a position.
func NewExport(dir string, tli pgwal.TLI, size pgwal.SegmentBytes, begin wal.LSN) (*Export, error) {
	if err := size.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &Export{dir: dir, tli: tli, size: size, at: begin}, nil
}

// Chunk writes the next bytes.
func (e *Export) Chunk(c wal.Chunk) error {
	if c.Begin != e.at {
		return fmt.Errorf("export: bytes from %v, expected them from %v", c.Begin, e.at)
	}
	for data := c.Data; len(data) > 0; {
		if e.file == nil {
			if err := e.open(); err != nil {
				return err
			}
		}
		offset := e.size.Offset(e.at)
		n := min(len(data), int(e.size)-offset)
		if _, err := e.file.WriteAt(data[:n], int64(offset)); err != nil {
			return err
		}
		data = data[n:]
		e.at += wal.LSN(n)
		if e.size.Offset(e.at) == 0 {
			if err := e.finish(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Export) open() error {
	e.name = filepath.Join(e.dir, e.size.FileName(e.tli, e.at))
	f, err := os.OpenFile(e.name+partialSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err := f.Truncate(int64(e.size)); err != nil {
		_ = f.Close()
		return err
	}
	e.file = f
	return nil
}

func (e *Export) finish() error {
	f := e.file
	e.file = nil
	err := f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(e.name+partialSuffix, e.name)
	}
	if err == nil {
		e.made = append(e.made, e.name)
	}
	return err
}

// Abandon ends an export that failed; an unfinished file keeps its suffix.
func (e *Export) Abandon() {
	if e.file != nil {
		_ = e.file.Close()
		e.file = nil
	}
}

// Close finishes the last file, syncs the directory, and returns the files in
// order.
func (e *Export) Close() ([]string, error) {
	var err error
	if e.file != nil {
		err = e.finish()
	}
	d, openErr := os.Open(e.dir)
	if openErr == nil {
		openErr = d.Sync()
		_ = d.Close()
	}
	return e.made, errors.Join(err, openErr)
}
