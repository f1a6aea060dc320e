package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
)

const (
	pageBytes      = 4096
	aheadBytesMin  = 16 << 10
	aheadBytesMax  = 256 << 10
	directBytesMax = 1 << 20 // an uncached read costs more each time
)

// window reads a file through one buffer, forwards and mostly once. Its memory
// is the larger of the read-ahead and the largest frame met.
type window struct {
	file     vfs.File
	uncached bool  // read past the page cache
	limit    int64 // nothing at or behind this offset is read: it may be being written

	buf   []byte
	off   int64 // file offset of buf[0]
	ahead int   // how much the next fill reads; grows as long as reading goes on

	// unreadable counts the pages that the device refused to read, and cause
	// is the first refusal. They read as zeroes: no frame is valid there.
	unreadable int
	cause      error

	// failed is the first read since failure was asked that did not come about for
	// a reason that is not the device's. What was read since says nothing about the log.
	failed error
}

func (w *window) reset(file vfs.File, limit int64, uncached bool) {
	*w = window{file: file, uncached: uncached, limit: limit, buf: w.buf[:0], ahead: aheadBytesMin, failed: w.failed}
}

// failure is to be asked before anything that was not found, or found wrong, is
// called damage. It forgets what it returns.
func (w *window) failure() error {
	err := w.failed
	w.failed = nil
	return err
}

// notOfTheDevice reports whether a read failed for want of something that the
// process lacks at the moment, and that another attempt may have.
func notOfTheDevice(err error) bool {
	for _, cause := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EAGAIN, syscall.EINTR, syscall.EACCES, syscall.EPERM, syscall.ESTALE,
		fs.ErrClosed,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// extend lets the window read up to limit, where more has become durable.
func (w *window) extend(limit int64) { w.limit = max(w.limit, limit) }

// bytes returns the n bytes at off, fewer if the file or the limit ends before.
// The result is valid until the next call.
func (w *window) bytes(off int64, n int) []byte {
	n = int(min(int64(n), max(w.limit-off, 0)))
	if off >= w.off && off+int64(n) <= w.off+int64(len(w.buf)) {
		return w.buf[off-w.off:][:n]
	}
	w.fill(off, n)
	have := w.off + int64(len(w.buf)) - off
	if have <= 0 {
		return nil
	}
	return w.buf[off-w.off:][:min(int64(n), have)]
}

// fill reads at least n bytes from off, from a page boundary on.
func (w *window) fill(off int64, n int) {
	start := off &^ (pageBytes - 1)
	want := max(w.ahead, int(off-start)+n)
	if most := aheadBytesMax; w.uncached {
		w.ahead = min(4*w.ahead, directBytesMax)
	} else {
		w.ahead = min(4*w.ahead, most)
	}
	want = int(min(int64(want), w.limit-start))
	if want <= 0 {
		w.buf, w.off = w.buf[:0], start
		return
	}
	if cap(w.buf) < want {
		w.buf = make([]byte, want, max(want, min(2*cap(w.buf), payloadBytesMax)))
	}
	w.buf, w.off = w.buf[:want], start
	got, err := w.readAt(w.buf, start)
	if err == nil || errors.Is(err, io.EOF) {
		w.buf = w.buf[:got]
		return
	}
	w.fillByPage(start)
}

// fillByPage reads what can be read of a range in which something cannot.
func (w *window) fillByPage(start int64) {
	clear(w.buf)
	for i := 0; i < len(w.buf); i += pageBytes {
		page := w.buf[i:min(i+pageBytes, len(w.buf))]
		got, err := w.readAt(page, start+int64(i))
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			w.buf = w.buf[:i+got]
			return
		case notOfTheDevice(err):
			if w.failed == nil {
				w.failed = err
			}
			w.buf = w.buf[:i]
			return
		default:
			clear(page)
			w.unreadable++
			if w.cause == nil {
				w.cause = err
			}
		}
	}
}

func (w *window) readAt(p []byte, off int64) (int, error) {
	if w.uncached {
		return w.file.ReadAtUncached(p, off)
	}
	return w.file.ReadAt(p, off)
}

// cursor walks the frames of one segment in the order in which they were written.
type cursor struct {
	win     window
	number  uint64
	nonce   uint64
	anyLife bool // the segment's nonce is not known: frames of any life are shown

	off int64  // where the next frame is expected
	seq uint64 // its sequence number; 0 if not known
}

func (c *cursor) start(file vfs.File, number, nonce uint64, off int64, seq uint64, limit int64) {
	c.win.reset(file, limit, false)
	c.number, c.nonce, c.anyLife = number, nonce, false
	c.off, c.seq = off, seq
}

// found is a frame and where it stands.
type found struct {
	frameHeader
	off int64
}

// next returns the frame that follows without a break: directly behind the one
// before, or, where a batch began, at the next sector.
func (c *cursor) next() (found, bool) {
	f, ok := c.at(c.off)
	if !ok || !c.follows(f) {
		aligned := alignSector(c.off)
		if aligned == c.off {
			return found{}, false
		}
		if f, ok = c.at(aligned); !ok || !c.follows(f) {
			return found{}, false
		}
	}
	c.pass(f)
	return f, true
}

func (c *cursor) follows(f found) bool { return c.seq == 0 || f.seq == c.seq }

// pass moves behind f.
func (c *cursor) pass(f found) {
	c.off = f.off + frameBytes(int(f.length))
	c.seq = f.seq + 1
}

// at decodes the frame at off if there is one that this life of the segment wrote.
func (c *cursor) at(off int64) (found, bool) {
	h, ok := decodeFrameHeader(c.win.bytes(off, frameHeaderBytes))
	if !ok || h.segment != c.number || (h.nonce != c.nonce && !c.anyLife) || h.length > payloadBytesMax {
		return found{}, false
	}
	return found{h, off}, true
}

// resync looks from the cursor on for the next valid frame whose sequence
// number is not below the expected one, and passes it. False: there is none up to the limit.
func (c *cursor) resync() (found, bool) {
	var key [16]byte
	binary.LittleEndian.PutUint64(key[:], c.nonce)
	binary.LittleEndian.PutUint64(key[8:], c.number)
	mark, markOff := key[:], int64(8) // nonce and segment number, as they stand in a frame
	if c.anyLife {
		mark, markOff = key[8:], 16
	}
	for off := pad8(c.off); ; {
		b := c.win.bytes(off, aheadBytesMax/4)
		if len(b) < frameHeaderBytes {
			return found{}, false
		}
		at := bytes.Index(b[markOff:], mark)
		if at < 0 {
			// The mark may straddle the end of b.
			off += max(8, int64(len(b))-frameHeaderBytes) &^ 7
			continue
		}
		if at%8 == 0 {
			if f, ok := c.at(off + int64(at)); ok && f.seq >= c.seq {
				c.pass(f)
				return f, true
			}
		}
		off += int64(at)&^7 + 8
	}
}

// payload returns f's payload and whether it is what its writer wrote. It is
// valid until the cursor's next call.
func (c *cursor) payload(f found) ([]byte, bool) {
	b := c.win.bytes(f.off+frameHeaderBytes, int(f.length))
	return b, len(b) == int(f.length) && checksum(b) == f.payloadCRC
}
