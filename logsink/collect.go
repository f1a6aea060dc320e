package logsink

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// LineBytesMax is the longest line that Collect hands over in one piece.
const LineBytesMax = 256 << 10

// Collect reads lines from r until it ends and hands each to emit, without its
// newline. A line longer than LineBytesMax comes in pieces; more says that another piece of
// it follows. line is valid until emit returns. emit must not wait for long,
// or the pipe's writer will.
//
// The end of r and its being closed by another goroutine are no errors. A last line without a newline counts.
func Collect(r io.Reader, emit func(line []byte, more bool)) error {
	buf := make([]byte, LineBytesMax)
	begin, scanned, end := 0, 0, 0 // buf[begin:end] is read; up to scanned it holds no newline
	for {
		n, err := r.Read(buf[end:])
		end += n
		for {
			i := bytes.IndexByte(buf[scanned:end], '\n')
			if i < 0 {
				break
			}
			emit(buf[begin:scanned+i], false)
			begin = scanned + i + 1
			scanned = begin
		}
		scanned = end
		switch {
		case err != nil:
			if begin < end {
				emit(buf[begin:end], false)
			}
			if err == io.EOF || errors.Is(err, os.ErrClosed) {
				return nil
			}
			return err
		case begin == end:
			begin, scanned, end = 0, 0, 0
		case end == len(buf) && begin == 0:
			emit(buf, true)
			begin, scanned, end = 0, 0, 0
		case begin > 0 && end > len(buf)/2: // make room, so that reads stay large
			end = copy(buf, buf[begin:end])
			begin, scanned = 0, end
		}
	}
}
