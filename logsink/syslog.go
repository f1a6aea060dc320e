package logsink

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// syslogBytes is the default limit of a packet's text.
	syslogBytes = 1024

	syslogBytesLeast = 16       // room for the longest character
	syslogBytesMost  = 32 << 10 // fits into a datagram, whatever carries it

	dialTimeout = time.Second
	retryLeast  = 20 * time.Millisecond
	retryMost   = time.Second
)

// SyslogOptions says how messages look. The zero value is usable.
type SyslogOptions struct {
	// BytesMax limits the text of one packet, header not counted: from 16 to
	// 32,768, 0 = 1,024. A longer message goes out in several packets.
	BytesMax int
	AppName  string // "" = the program's name
	Facility int    // 0 = 3, system daemons
	Buffer   int    // as limit of NewSink
}

// Syslog starts a sink that sends RFC 5424 messages to address, one of
//
//	unix:///dev/log        a datagram socket, or else a stream socket
//	udp://127.0.0.1:514
//	tcp://127.0.0.1:601
//
// The text of a packet is "[7-2/5] ..." for the second of the five packets of
// message 7; the structured data's sequenceId counts packets. Messages are cut
// between characters. Streams use octet counting (RFC 6587).
//
// A connection that cannot be made or breaks is tried again with growing
// pauses for as long as it takes, while the sink buffers and, once full, drops
// and counts. UDP may lose packets on the way: then a number is missing. So
// Syslog itself returns an error only for an address or an option that is wrong.
func Syslog(address string, o SyslogOptions) (*Sink, error) {
	network, target, err := parseSyslogAddress(address)
	if err != nil {
		return nil, err
	}
	if o.BytesMax == 0 {
		o.BytesMax = syslogBytes
	}
	if o.BytesMax < syslogBytesLeast || o.BytesMax > syslogBytesMost {
		return nil, fmt.Errorf("syslog limit %d: expected %d to %d bytes", o.BytesMax, syslogBytesLeast, syslogBytesMost)
	}
	if o.Facility == 0 {
		o.Facility = 3
	}
	if o.Facility < 0 || o.Facility > 23 {
		return nil, fmt.Errorf("syslog facility %d: expected 0 to 23", o.Facility)
	}
	if o.AppName == "" {
		o.AppName = filepath.Base(os.Args[0])
	}
	host, err := os.Hostname()
	if err != nil {
		host = "-"
	}
	w := &syslogWriter{
		network: network,
		target:  target,
		limit:   o.BytesMax,
		head: packetHead{
			facility: o.Facility,
			from:     printable(host, 255) + " " + printable(o.AppName, 48) + " " + strconv.Itoa(os.Getpid()),
		},
		quit: make(chan struct{}),
	}
	s := NewSink(w, o.Buffer)
	s.syslog = w
	return s, nil
}

func parseSyslogAddress(address string) (network, target string, err error) {
	u, err := url.Parse(address)
	if err == nil {
		switch {
		case u.Scheme == "unix" && u.Host == "" && u.Path != "":
			return "unix", u.Path, nil
		case (u.Scheme == "udp" || u.Scheme == "tcp") && u.Port() != "" && strings.Trim(u.Path, "/") == "":
			return u.Scheme, u.Host, nil
		}
	}
	return "", "", fmt.Errorf("syslog address %q: expected unix:///PATH, udp://HOST:PORT or tcp://HOST:PORT", address)
}

// printable makes s fit for a header field: printable ASCII without spaces, "-" if nothing is left.
func printable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
	if s = s[:min(len(s), most)]; s == "" {
		return "-"
	}
	return s
}

// syslogWriter sends the records of a sink. Only the sink's goroutine writes.
type syslogWriter struct {
	network, target string
	limit           int
	head            packetHead
	packet, frame   []byte

	mu     sync.Mutex
	conn   net.Conn // nil: not connected
	stream bool
	quit   chan struct{} // closed: give up
	gaveUp bool
}

// Write sends whole records. It returns early, with how many bytes of records
// were sent, only when it is told to give up or a packet can never be sent.
func (w *syslogWriter) Write(records []byte) (int, error) {
	rest := records
	for len(rest) > 0 {
		done := len(records) - len(rest)
		severity, at, text, next, err := cutRecord(rest)
		if err != nil {
			return done, err
		}
		w.head.begin(severity, at)
		for part := range split(text, w.limit) {
			w.packet = w.head.append(w.packet[:0], part)
			if err := w.send(w.packet); err != nil {
				return done, err
			}
		}
		rest = next
	}
	return len(records), nil
}

// send sends one packet, connecting first if need be, until it succeeds.
func (w *syslogWriter) send(packet []byte) error {
	for pause := retryLeast; ; pause = min(2*pause, retryMost) {
		err := w.sendOnce(packet)
		if err == nil || errors.Is(err, syscall.EMSGSIZE) {
			return err
		}
		w.disconnect()
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-w.quit:
			timer.Stop()
			return err
		}
	}
}

func (w *syslogWriter) sendOnce(packet []byte) error {
	conn, stream, err := w.connect()
	if err != nil {
		return err
	}
	if stream {
		if hungUp(conn) {
			return io.ErrUnexpectedEOF
		}
		w.frame = append(strconv.AppendInt(w.frame[:0], int64(len(packet)), 10), ' ')
		w.frame = append(w.frame, packet...)
		packet = w.frame
	}
	_, err = conn.Write(packet)
	return err
}

// hungUp reports whether the other side of a stream has closed it. The first write after
// that would succeed and be lost.
func hungUp(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = n == 0 && err == nil || err != nil && err != unix.EAGAIN && err != unix.EINTR
	})
	return closed || err != nil
}

func (w *syslogWriter) connect() (net.Conn, bool, error) {
	w.mu.Lock()
	conn, stream := w.conn, w.stream
	w.mu.Unlock()
	if conn != nil {
		return conn, stream, nil
	}
	network, stream := w.network, w.network == "tcp"
	if network == "unix" {
		network = "unixgram"
	}
	conn, err := net.DialTimeout(network, w.target, dialTimeout)
	if err != nil && w.network == "unix" && errors.Is(err, syscall.EPROTOTYPE) {
		stream = true
		conn, err = net.DialTimeout("unix", w.target, dialTimeout)
	}
	if err != nil {
		return nil, false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gaveUp {
		_ = conn.Close()
		return nil, false, os.ErrDeadlineExceeded
	}
	w.conn, w.stream = conn, stream
	return conn, stream, nil
}

func (w *syslogWriter) disconnect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// SetWriteDeadline makes a Write that is under way, and every later one, give
// up: the sink calls it when its time to close is over.
func (w *syslogWriter) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gaveUp {
		w.gaveUp = true
		close(w.quit)
	}
	if w.conn != nil {
		return w.conn.SetWriteDeadline(t)
	}
	return nil
}

// Close ends the connection.
func (w *syslogWriter) Close() error {
	w.disconnect()
	return nil
}
