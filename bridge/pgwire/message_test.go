package pgwire

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// body cuts the one CopyData frame in b.
func body(t *testing.T, b []byte) []byte {
	t.Helper()
	kind, body, err := NewReader(bytes.NewReader(b)).Next()
	if err != nil || kind != 'd' || len(body)+5 != len(b) {
		t.Fatalf("frame: kind %q, %d of %d bytes, %v", kind, len(body), len(b), err)
	}
	return body
}

func TestMessagesRoundTrip(t *testing.T) {
	x := XLogData{Start: 0x1_0000_0028, ServerEnd: 0x1_0000_1000, Time: 7, Data: []byte("wal")}
	var gotX XLogData
	if err := gotX.Decode(body(t, append(x.AppendHeader(nil), x.Data...))); err != nil || gotX.Start != x.Start || gotX.ServerEnd != x.ServerEnd || gotX.Time != 7 || string(gotX.Data) != "wal" {
		t.Fatalf("XLogData %+v, %v", gotX, err)
	}
	k := Keepalive{ServerEnd: 5, Time: -3, ReplyRequested: true}
	var gotK Keepalive
	if err := gotK.Decode(body(t, k.AppendFrame(nil))); err != nil || gotK != k {
		t.Fatalf("keepalive %+v, %v", gotK, err)
	}
	s := StatusUpdate{Write: 3, Flush: 0, Apply: 1, Time: 9, ReplyRequested: true}
	var gotS StatusUpdate
	if err := gotS.Decode(body(t, s.AppendFrame(nil))); err != nil || gotS != s {
		t.Fatalf("status update %+v, %v: a flush of 0 must stay 0", gotS, err)
	}
	h := HotStandbyFeedback{1, 2, 3, 4, 5}
	var gotH HotStandbyFeedback
	if err := gotH.Decode(body(t, h.AppendFrame(nil))); err != nil || gotH != h {
		t.Fatalf("feedback %+v, %v", gotH, err)
	}
}

func TestStatusUpdateBytesAreThoseOfTheProtocol(t *testing.T) {
	s := StatusUpdate{Write: 0x0102030405060708, Flush: 2, Apply: 3, Time: 4}
	want := []byte{'d', 0, 0, 0, 38, 'r', 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0}
	if got := s.AppendFrame(nil); !bytes.Equal(got, want) {
		t.Fatalf("\n got %v\nwant %v", got, want)
	}
}

func TestMicros(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 0, 1, 5000, time.UTC)
	if m := Micros(at); m != 1_000_005 || !FromMicros(m).Equal(at) {
		t.Fatalf("%d, %v", m, FromMicros(m))
	}
}

func TestReaderCutsMessagesHoweverTheyArrive(t *testing.T) {
	var stream []byte
	var want []int
	for _, n := range []int{0, 1, 100, 131072, 3, readerBufferBytes + 17, 9, 2 << 20, 0} {
		x := XLogData{Start: wal.LSN(len(stream)), Data: bytes.Repeat([]byte{byte(n)}, n)}
		stream = append(x.AppendHeader(stream), x.Data...)
		want = append(want, n)
	}
	for name, r := range map[string]io.Reader{
		"whole": bytes.NewReader(stream), "half": iotest.HalfReader(bytes.NewReader(stream)),
		"data with EOF": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		rd := NewReader(r)
		for i, n := range want {
			_, b, err := rd.Next()
			var x XLogData
			if err == nil {
				err = x.Decode(b)
			}
			if err != nil || len(x.Data) != n || n > 0 && (x.Data[0] != byte(n) || x.Data[n-1] != byte(n)) {
				t.Fatalf("%s: message %d: %d bytes, %v; want %d", name, i, len(x.Data), err, n)
			}
		}
		if _, _, err := rd.Next(); err != io.EOF {
			t.Fatalf("%s: at the end: %v", name, err)
		}
	}
	if _, _, err := NewReader(bytes.NewReader(stream[:40])).Next(); err != nil {
		t.Fatal(err)
	}
	rd := NewReader(bytes.NewReader(stream[:50]))
	rd.Next()
	if _, _, err := rd.Next(); err != io.ErrUnexpectedEOF {
		t.Fatalf("cut message: %v", err)
	}
	if _, _, err := NewReader(bytes.NewReader([]byte{'d', 0xff, 0, 0, 0, 1})).Next(); err == nil {
		t.Fatal("a length of 4 GiB was accepted")
	}
}

func TestHandshakeReaderStopsAtMessages(t *testing.T) {
	k := Keepalive{ServerEnd: 1}
	one := k.AppendFrame(nil)
	rd := NewReader(bytes.NewReader(append(append([]byte{}, one...), one...)))
	p := make([]byte, 4096)
	if n, err := rd.HandshakeReader().Read(p); n != len(one) || err != nil {
		t.Fatalf("read %d, %v; the first message has %d bytes", n, err, len(one))
	}
	if kind, b, err := rd.Next(); kind != 'd' || len(b) != keepaliveBytes || err != nil {
		t.Fatalf("second message: %q %d %v", kind, len(b), err)
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	x := XLogData{Data: make([]byte, 700)}
	one := append(x.AppendHeader(nil), x.Data...)
	rd := NewReader(&endless{bytes.Repeat(one, 8), 0})
	var got XLogData
	if n := testing.AllocsPerRun(1000, func() {
		_, b, err := rd.Next()
		if err != nil || got.Decode(b) != nil || len(got.Data) != 700 {
			t.Fatal("bad message", err)
		}
	}); n != 0 {
		t.Fatalf("%v allocations per message", n)
	}
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { s := StatusUpdate{}; buf = s.AppendFrame(buf[:0]) }); n != 0 {
		t.Fatalf("%v allocations per status update", n)
	}
}

// endless repeats its bytes for ever.
type endless struct {
	b   []byte
	pos int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.b[e.pos:])
	e.pos = (e.pos + n) % len(e.b)
	return n, nil
}

func BenchmarkReader(b *testing.B) {
	x := XLogData{Data: make([]byte, 900)}
	one := append(x.AppendHeader(nil), x.Data...)
	rd := NewReader(&endless{bytes.Repeat(one, 100), 0})
	b.SetBytes(int64(len(one)))
	b.ReportAllocs()
	var got XLogData
	for b.Loop() {
		_, body, _ := rd.Next()
		got.Decode(body)
	}
}
