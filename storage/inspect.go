package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// FileInfo is what a look at one file of a timeline's directory shows.
type FileInfo struct {
	Name   string
	Number uint64 // 0 if the name is not a segment's
	Bytes  int64
	Nonce  uint64
	Err    error // why the segment header cannot be used, or the file not be read
}

// FrameInfo is one valid frame header and whether its payload is intact.
type FrameInfo struct {
	Offset  int64
	Gap     bool // bytes that are no frame, other than padding, or missing numbers lie in front
	Seq     uint64
	Durable uint64 // last sequence number that was known durable
	Kind    string // data, state, head, seal
	Term    wal.Term
	Begin   wal.LSN // of a state: the log's end
	End     wal.LSN
	Commit  wal.LSN
	Bytes   int // of payload
	Intact  bool

	// Of an intact state frame; nil otherwise.
	State *wal.State
	Trim  wal.LSN
}

// Inspect shows every file of a timeline's directory and every frame in it, as
// they stand: also what does not count any more, and what is damaged. It only
// reads, needs no healthy log, and may be used on one that is being written.
// An error from visitFile or visitFrame ends it; visitFrame may be nil.
func Inspect(fsys vfs.FS, dir string, visitFile func(FileInfo) error, visitFrame func(FrameInfo) error) error {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", dir, ErrNotFound)
	}
	if err != nil {
		return err
	}
	var c cursor
	for _, e := range entries {
		if e.Dir || e.Name == damageFile || e.Name == reasonFile {
			continue
		}
		if err := inspectFile(fsys, dir, e, &c, visitFile, visitFrame); err != nil {
			return err
		}
	}
	return nil
}

func inspectFile(fsys vfs.FS, dir string, e vfs.Entry, c *cursor, visitFile func(FileInfo) error, visitFrame func(FrameInfo) error) error {
	info := FileInfo{Name: e.Name, Bytes: e.Size}
	info.Number, _ = parseSegmentName(e.Name)
	if info.Number == 0 {
		info.Err = errors.New("not a segment's name")
		return visitFile(info)
	}
	file, err := fsys.OpenRead(path.Join(dir, e.Name))
	if err != nil {
		info.Err = err
		return visitFile(info)
	}
	defer file.Close()
	c.start(file, info.Number, 0, sectorBytes, 0, e.Size)
	h, err := decodeSegmentHeader(c.win.bytes(0, sectorBytes))
	if err == nil && h.number != info.Number {
		err = fmt.Errorf("the segment header is that of segment %d", h.number)
	}
	info.Nonce, info.Err = h.nonce, err
	c.nonce, c.anyLife = h.nonce, err != nil
	if err := visitFile(info); err != nil || visitFrame == nil {
		return err
	}
	for {
		f, follows := c.next()
		if !follows {
			var ok bool
			c.seq = 0 // whatever is there
			if f, ok = c.resync(); !ok {
				return nil
			}
		}
		if err := visitFrame(describe(c, f, !follows)); err != nil {
			return err
		}
	}
}

func describe(c *cursor, f found, gap bool) FrameInfo {
	info := FrameInfo{
		Offset: f.off, Gap: gap, Seq: f.seq, Durable: f.durable, Kind: "data", Term: f.term,
		Begin: f.lsn, End: f.end(), Commit: f.commit, Bytes: int(f.length),
	}
	var payload []byte
	payload, info.Intact = c.payload(f)
	switch {
	case f.kind == kindData:
		return info
	case f.isHead():
		info.Kind = "head"
	case f.isSeal():
		info.Kind = "seal"
	default:
		info.Kind = "state"
	}
	if info.Intact {
		if s, err := decodeState(payload, f.lsn); err == nil {
			info.State, info.Trim = &s.State, s.trim
		} else {
			info.Intact = false
		}
	}
	return info
}
