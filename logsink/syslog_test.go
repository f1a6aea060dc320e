package logsink

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// received takes packets apart and puts messages together again.
type received struct {
	t        *testing.T
	limit    int
	packets  int
	messages []string
	part     int
}

var packetForm = regexp.MustCompile(`(?s)^<(\d+)>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) (\S+) (\S+) (\d+) - \[meta sequenceId="(\d+)"\] \[(\d+)-(\d+)/(\d+)\] (.*)$`)

// add takes one packet and reports whether it completes a message.
func (r *received) add(packet string) (whole bool) {
	r.t.Helper()
	f := packetForm.FindStringSubmatch(packet)
	if f == nil {
		r.t.Fatalf("packet %q", packet)
	}
	r.packets++
	number := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
	if number(6) != r.packets {
		r.t.Fatalf("packet %d has sequence id %d", r.packets, number(6))
	}
	if len(f[10]) > r.limit || !utf8.ValidString(f[10]) {
		r.t.Fatalf("a text of %d bytes, limit %d, valid UTF-8: %v", len(f[10]), r.limit, utf8.ValidString(f[10]))
	}
	if r.part == 0 {
		r.messages = append(r.messages, "")
	}
	r.part++
	if number(7) != len(r.messages) || number(8) != r.part {
		r.t.Fatalf("got part %d of message %d, expected part %d of message %d", number(8), number(7), r.part, len(r.messages))
	}
	r.messages[len(r.messages)-1] += f[10]
	if r.part == number(9) {
		r.part = 0
	}
	return r.part == 0
}

// texts that are logged, short, long, and full of characters of every length.
func syslogTexts() []string {
	return []string{"short", "", strings.Repeat("x", 5000), strings.Repeat("aé€😀", 1000), "last"}
}

func logTexts(t *testing.T, s *Sink, texts []string) {
	t.Helper()
	core := New(zapcore.InfoLevel, JSON, s)
	for i, text := range texts {
		if err := core.With([]zapcore.Field{zap.Int("i", i)}).Write(zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Unix(0, 0), Message: text}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func checkTexts(t *testing.T, r *received, texts []string) {
	t.Helper()
	for i, text := range texts {
		want := fmt.Sprintf(`{"level":"warn","ts":"1970-01-01T00:00:00.000000Z","msg":"%s","i":%d}`, text, i)
		if r.messages[i] != want {
			t.Errorf("message %d: got %.100q, expected %.100q", i, r.messages[i], want)
		}
	}
}

func readPackets(t *testing.T, c net.PacketConn, r *received, messages int) {
	t.Helper()
	buf := make([]byte, 64<<10)
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for whole := 0; whole < messages; {
		n, _, err := c.ReadFrom(buf)
		if err != nil {
			t.Fatal(err)
		}
		if r.add(string(buf[:n])) {
			whole++
		}
	}
}

func TestSyslogDatagrams(t *testing.T) {
	dir := t.TempDir()
	for _, network := range []string{"unixgram", "udp"} {
		for _, limit := range []int{16, 128, 1024} {
			path := filepath.Join(dir, strconv.Itoa(limit))
			listen, address := path, "unix://"+path
			if network == "udp" {
				listen = "127.0.0.1:0"
			}
			server, err := net.ListenPacket(network, listen)
			if err != nil {
				t.Fatal(err)
			}
			texts := syslogTexts()
			if network == "udp" {
				address = "udp://" + server.LocalAddr().String()
				texts = []string{"one", "two"} // few enough for the socket's buffer
			}
			s, err := Syslog(address, SyslogOptions{BytesMax: limit, AppName: "hold fast"})
			if err != nil {
				t.Fatal(err)
			}
			logTexts(t, s, texts)
			r := &received{t: t, limit: limit}
			readPackets(t, server, r, len(texts))
			checkTexts(t, r, texts)
			if err := s.Close(within(t, 10*time.Second)); err != nil {
				t.Error(err)
			}
			_ = server.Close()
			if s.DroppedLines() != 0 {
				t.Errorf("%d messages dropped", s.DroppedLines())
			}
		}
	}
}

// readFrames reads octet-counted packets until n messages are whole.
func readFrames(t *testing.T, in *bufio.Reader, r *received, messages int) {
	t.Helper()
	for whole := 0; whole < messages; {
		size, err := in.ReadString(' ')
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSuffix(size, " "))
		if err != nil {
			t.Fatal(err)
		}
		packet := make([]byte, n)
		if _, err := io.ReadFull(in, packet); err != nil {
			t.Fatal(err)
		}
		if r.add(string(packet)) {
			whole++
		}
	}
}

func TestSyslogStreams(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, network := range []string{"unix", "tcp"} {
		listen, address := path, "unix://"+path
		if network == "tcp" {
			listen = "127.0.0.1:0"
		}
		server, err := net.Listen(network, listen)
		if err != nil {
			t.Fatal(err)
		}
		if network == "tcp" {
			address = "tcp://" + server.Addr().String()
		}
		s, err := Syslog(address, SyslogOptions{BytesMax: 128})
		if err != nil {
			t.Fatal(err)
		}
		texts := syslogTexts()
		r := &received{t: t, limit: 128}
		// The server hangs up after the first half: what follows arrives on a new connection.
		logTexts(t, s, texts[:2])
		conn, err := server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		readFrames(t, bufio.NewReader(conn), r, 2)
		_ = conn.Close()

		core := New(zapcore.InfoLevel, JSON, s)
		for i, text := range texts[2:] {
			if err := core.Write(zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Unix(0, 0), Message: text}, []zapcore.Field{zap.Int("i", i+2)}); err != nil {
				t.Fatal(err)
			}
		}
		if conn, err = server.Accept(); err != nil {
			t.Fatal(err)
		}
		// Packets that found the first connection closed were sent again, with their numbers.
		readFrames(t, bufio.NewReader(conn), r, len(texts)-2)
		checkTexts(t, r, texts)
		if err := s.Close(within(t, 10*time.Second)); err != nil {
			t.Error(err)
		}
		_, _ = conn.Close(), server.Close()
	}
}

// A syslog that is not there yet costs nothing but the wait.
func TestSyslogComesLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s, err := Syslog("unix://"+path, SyslogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"early", "birds"}
	logTexts(t, s, texts)
	server, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	r := &received{t: t, limit: 1024}
	readPackets(t, server, r, 2)
	checkTexts(t, r, texts)
	if err := s.Close(within(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
}

// A syslog that never comes, and one that does not read, do not hold Close up.
func TestSyslogStuck(t *testing.T) {
	dir := t.TempDir()
	server, err := net.ListenPacket("unixgram", filepath.Join(dir, "deaf"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	for _, name := range []string{"absent", "deaf"} {
		s, err := Syslog("unix://"+filepath.Join(dir, name), SyslogOptions{})
		if err != nil {
			t.Fatal(err)
		}
		texts := make([]string, 5000)
		for i := range texts {
			texts[i] = strings.Repeat("x", 900)
		}
		logTexts(t, s, texts)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Close(ctx); err == nil {
			t.Errorf("%s: Close says that all was written", name)
		}
		select {
		case <-s.ended:
		default:
			t.Errorf("%s: the writer is still there", name)
		}
		if s.DroppedLines() == 0 {
			t.Errorf("%s: no drop was counted", name)
		}
	}
}

func TestSyslogSaysWhatItDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s, err := Syslog("unix://"+path, SyslogOptions{Buffer: 2000})
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = "text"
	}
	logTexts(t, s, texts)
	kept := len(texts) - int(s.DroppedLines())
	if kept == len(texts) {
		t.Fatal("nothing was dropped")
	}
	server, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	r := &received{t: t, limit: 1024}
	said := 0 // the writer may have taken a batch, with a notice, between two drops
	notice := regexp.MustCompile(`"dropped_lines":(\d+),`)
	for said < len(texts)-kept {
		readPackets(t, server, r, 1)
		if f := notice.FindStringSubmatch(r.messages[len(r.messages)-1]); f != nil {
			n, _ := strconv.Atoi(f[1])
			said += n
		}
	}
	if said != int(s.DroppedLines()) {
		t.Errorf("the log says that %d lines were dropped, expected %d", said, s.DroppedLines())
	}
	if err := s.Close(within(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
}

func TestSyslogAddresses(t *testing.T) {
	for address, want := range map[string][2]string{
		"unix:///dev/log": {"unix", "/dev/log"}, "udp://127.0.0.1:514": {"udp", "127.0.0.1:514"}, "tcp://[::1]:601": {"tcp", "[::1]:601"},
	} {
		network, target, err := parseSyslogAddress(address)
		if err != nil || network != want[0] || target != want[1] {
			t.Errorf("%s: %s %s %v", address, network, target, err)
		}
	}
	for _, address := range []string{"", "/dev/log", "unix://dev/log", "udp://host", "http://host:1", "tcp://host:1/path", "unix://"} {
		if _, err := Syslog(address, SyslogOptions{}); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
	for _, o := range []SyslogOptions{{BytesMax: 15}, {BytesMax: 1 << 20}, {Facility: 24}, {Facility: -1}} {
		if _, err := Syslog("unix:///dev/log", o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestSequenceWraps(t *testing.T) {
	h := packetHead{packets: 1<<31 - 2}
	for _, want := range []string{`sequenceId="2147483647"`, `sequenceId="1"`} {
		if got := string(h.append(nil, part{})); !strings.Contains(got, want) {
			t.Errorf("got %s, expected %s", got, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("aé€😀aé€😀aé€😀aé€😀"), 16)
	f.Add([]byte{}, 16)
	f.Add([]byte("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"), 17)
	f.Fuzz(func(t *testing.T, text []byte, limit int) {
		limit = syslogBytesLeast + (limit&0xffff)%200
		var got []byte
		n := 0
		for p := range split(text, limit) {
			n++
			if p.number != n || len(p.text) > limit || len(p.text) == 0 && len(text) > 0 {
				t.Fatalf("part %d has number %d and %d bytes", n, p.number, len(p.text))
			}
			if utf8.Valid(text) && !utf8.Valid(p.text) {
				t.Fatalf("part %d cuts a character", n)
			}
			if p.number < p.count && len(p.text) <= limit-utf8.UTFMax {
				t.Fatalf("part %d is shorter than it need be", n)
			}
			got = append(got, p.text...)
		}
		if string(got) != string(text) || n == 0 {
			t.Fatalf("%d parts hold %d bytes, expected %d", n, len(got), len(text))
		}
	})
}
