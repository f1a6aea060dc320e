package pgwire

import (
	"encoding/binary"
	"io"
)

const (
	readerBufferBytes = 256 << 10

	// MessageBytesMax bounds one message: PostgreSQL sends at most 16 WAL pages
	// in one XLogData, half a MiB with the largest page, and history files are smaller.
	MessageBytesMax = 16 << 20
)

// Reader cuts a stream of bytes into protocol messages. It reads as much as
// there is in one call, so that a burst of small messages costs one system
// call, and hands out each message in its own buffer. It is used by one goroutine.
type Reader struct {
	r     io.Reader
	buf   []byte
	begin int // unread bytes are buf[begin:end]
	end   int

	passLeft int // bytes of the current message that HandshakeReader has not handed out yet
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: r, buf: make([]byte, readerBufferBytes)}
}

// Next returns the next message's type and body. The body is valid until the
// next call. A connection that ends between two messages is io.EOF, inside one
// io.ErrUnexpectedEOF.
func (r *Reader) Next() (kind byte, body []byte, err error) {
	if err := r.fill(5); err != nil {
		return 0, nil, err
	}
	kind = r.buf[r.begin]
	n := int(binary.BigEndian.Uint32(r.buf[r.begin+1:]))
	if n < 4 || n > MessageBytesMax {
		return 0, nil, malformed("message", "type %q says it has %d bytes; expected 4 to %d", kind, n, MessageBytesMax)
	}
	if err := r.fill(1 + n); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	body = r.buf[r.begin+5 : r.begin+1+n : r.begin+1+n]
	r.begin += 1 + n
	return kind, body, nil
}

// Buffered reports whether a whole message can be had without reading.
func (r *Reader) Buffered() bool {
	have := r.end - r.begin
	return have >= 5 && have > int(binary.BigEndian.Uint32(r.buf[r.begin+1:]))
}

// fill makes at least n unread bytes available.
func (r *Reader) fill(n int) error {
	if r.end-r.begin >= n {
		return nil
	}
	if r.begin+n > len(r.buf) {
		to := r.buf
		if n > len(to) {
			to = make([]byte, n)
		}
		r.end = copy(to, r.buf[r.begin:r.end])
		r.begin, r.buf = 0, to
	} else if r.begin == r.end {
		r.begin, r.end = 0, 0
	}
	for r.end-r.begin < n {
		m, err := r.r.Read(r.buf[r.end:])
		r.end += m
		if err != nil && r.end-r.begin < n {
			if err == io.EOF && r.end > r.begin {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// HandshakeReader returns a reader that never hands out bytes beyond the
// message it is in. The library that performs the handshake buffers what it
// reads; through this it cannot take what belongs to the stream behind it.
func (r *Reader) HandshakeReader() io.Reader { return handshakeReader{r} }

type handshakeReader struct{ r *Reader }

func (h handshakeReader) Read(p []byte) (int, error) {
	r := h.r
	if r.passLeft == 0 {
		if err := r.fill(5); err != nil {
			return 0, err
		}
		n := int(binary.BigEndian.Uint32(r.buf[r.begin+1:]))
		if n < 4 || n > MessageBytesMax {
			return 0, malformed("message", "type %q says it has %d bytes; expected 4 to %d", r.buf[r.begin], n, MessageBytesMax)
		}
		r.passLeft = 1 + n
	}
	if err := r.fill(1); err != nil {
		return 0, err
	}
	n := copy(p, r.buf[r.begin:min(r.end, r.begin+r.passLeft)])
	r.begin += n
	r.passLeft -= n
	return n, nil
}
