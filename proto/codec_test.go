package proto

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"
)

// heap is an AppendSink that takes its memory from the heap.
type heap struct{ taken int }

func (h *heap) Take(n int) ([]byte, error) {
	h.taken += n
	return make([]byte, n), nil
}

// These are the bytes on the wire. They change only with the protocol's version.
func TestGoldenBytes(t *testing.T) {
	short := sampleAppend(5)
	for _, c := range []struct {
		m    any
		want string
	}{
		{short, "2239" + "090100000000000000" + "110700000000000000" + "19c8e0040701000000" + "2100e0040701000000" + "290000000701000000" + "35" + "0e8dcca6" + "7a0577616c2177"},
		{&consensus.AppendRequest{Generation: 1, Term: 7, Begin: 16}, "2232" + "090100000000000000" + "110700000000000000" + "191000000000000000" + "210000000000000000" + "290000000000000000" + "3500000000"},
		{sampleAck(), "1a26" + "090700000000000000" + "11c8e0040701000000" + "1900e0040701000000" + "20e05d" + "28b0ea01" + "30f0f512"},
		{&consensus.AppendResponse{Term: 7}, "1a09" + "090700000000000000"},
	} {
		b, err := Codec{}.Marshal(c.m)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(b.Materialize()); got != c.want {
			t.Errorf("%+v\n got %s\nwant %s", c.m, got, c.want)
		}
		b.Free()
	}
}

func TestEncodersAgreeWithProtobuf(t *testing.T) {
	for _, n := range []int{0, 1, 64, 127, 128, 129, 900, contiguousBytesMax, contiguousBytesMax + 1, 1 << 16, wal.RequestBytesMax} {
		r := sampleAppend(n)
		r.CRC |= 1 // protobuf leaves a zero out
		pb, _ := EncodeProposerMessage(r)
		agree(t, r, pb)
	}
	r := sampleAck()
	pb, _ := EncodeAcceptorMessage(r)
	agree(t, r, pb)
	r = &consensus.AppendResponse{Flush: 1<<64 - 1, Stages: consensus.Stages{SyncNanos: 1<<64 - 1, WriteNanos: 1<<64 - 1, QueueNanos: 1<<64 - 1}}
	r.Term, r.Commit = 1<<64-1, 1<<64-1
	pb, _ = EncodeAcceptorMessage(r)
	agree(t, r, pb)
	if got := len(appendAppendResponse(nil, r)); got != appendResponseBytes {
		t.Errorf("the longest AppendResponse has %d bytes, appendResponseBytes is %d", got, appendResponseBytes)
	}
}

func agree(t *testing.T, m consensus.Message, pb protobuf.Message) {
	t.Helper()
	want, err := protobuf.MarshalOptions{Deterministic: true}.Marshal(pb)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Codec{}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Free()
	if !bytes.Equal(got.Materialize(), want) {
		t.Errorf("%T of %d bytes: %x..., protobuf writes %x...", m, len(want), head(got.Materialize()), head(want))
	}
}

func head(b []byte) []byte { return b[:min(len(b), 80)] }

// Every message comes back from the codec, however gRPC has cut it up.
func TestCodecRoundTrip(t *testing.T) {
	for _, m := range append(proposerSamples(), sampleAppend(0), sampleAppend(contiguousBytesMax+1)) {
		if r, ok := m.(*consensus.AppendRequest); ok && len(r.Data) == 0 {
			r.Data = nil
		}
		for cut := 1; cut < 100; cut++ {
			var in FromProposer
			in.Sink = &heap{}
			if err := in.Receive(wire{t, m, cut}); err != nil {
				t.Fatalf("%T cut at %d: %v", m, cut, err)
			}
			if !reflect.DeepEqual(in.Message(), m) {
				t.Fatalf("%T cut at %d: got %+v, expected %+v", m, cut, in.Message(), m)
			}
			if _, isAppend := m.(*consensus.AppendRequest); isAppend != second(in.Append()) {
				t.Fatalf("Append says %v of %T", !isAppend, m)
			}
		}
	}
	for _, m := range append(acceptorSamples(), &consensus.AppendResponse{}) {
		for cut := 1; cut < 100; cut++ {
			var in FromAcceptor
			if err := in.Receive(wire{t, m, cut}); err != nil {
				t.Fatalf("%T cut at %d: %v", m, cut, err)
			}
			if !reflect.DeepEqual(in.Message(), m) {
				t.Fatalf("%T cut at %d: got %+v, expected %+v", m, cut, in.Message(), m)
			}
			if _, isAppend := m.(*consensus.AppendResponse); isAppend != second(in.Append()) {
				t.Fatalf("Append says %v of %T", !isAppend, m)
			}
		}
	}
}

func second[A any](_ A, b bool) bool { return b }

// wire is a stream on which m arrives, in pieces of cut bytes.
type wire struct {
	t   *testing.T
	m   any
	cut int
}

func (w wire) RecvMsg(v any) error {
	out, err := Codec{}.Marshal(w.m)
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Free()
	return Codec{}.Unmarshal(pieces(out.Materialize(), w.cut), v)
}

func pieces(b []byte, cut int) mem.BufferSlice {
	var s mem.BufferSlice
	for len(b) > 0 {
		n := min(cut, len(b))
		s = append(s, mem.SliceBuffer(b[:n]))
		b = b[n:]
	}
	return s
}

// What the short way does not know must come out the same by the long one.
func TestUnusualEncodings(t *testing.T) {
	h := func(s string) []byte {
		b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		fast bool
	}{
		{"other order", h("22 17 35 06000000 19 1000000000000000 11 0700000000000000"), true},
		{"a field twice", h("22 12 11 0600000000000000 11 0700000000000000"), true},
		{"long varint of the length", h("22 8900 11 0700000000000000"), true},
		{"explicit empty data", h("22 0b 11 0700000000000000 7a00"), true},
		{"data first", h("22 0c 7a0161 11 0700000000000000"), false},
		{"data twice", h("22 0f 11 0700000000000000 7a0161 7a0162"), false},
		{"unknown field inside", h("22 0b 11 0700000000000000 5001"), false},
		{"unknown field outside", h("5001 22 09 11 0700000000000000"), false},
		{"append in two parts", h("22 09 11 0700000000000000 22 09 19 1000000000000000"), false},
		{"a vote, then an append", h("12 00 22 09 11 0700000000000000"), false},
	} {
		var want holdfastv1.ProposerMessage
		if err := protobuf.Unmarshal(c.b, &want); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		expected, err := DecodeProposerMessage(&want)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var r consensus.AppendRequest
		if _, ok := parseAppendHeader(c.b, len(c.b), &r); ok != c.fast {
			t.Errorf("%s: the short way says %v, expected %v", c.name, ok, c.fast)
		}
		in := FromProposer{Sink: &heap{}}
		if err := in.Receive(raw(c.b)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if !reflect.DeepEqual(in.Message(), expected) {
			t.Errorf("%s: got %+v, expected %+v", c.name, in.Message(), expected)
		}
	}
}

// raw is a stream on which exactly these bytes arrive.
type raw []byte

func (r raw) RecvMsg(v any) error { return Codec{}.Unmarshal(pieces(r, 7), v) }

var errFull = errors.New("no room")

type full struct{}

func (full) Take(int) ([]byte, error) { return nil, errFull }

func TestReceiveErrors(t *testing.T) {
	in := FromProposer{Sink: full{}}
	if err := in.Receive(wire{t, sampleAppend(10), 1000}); err != errFull {
		t.Errorf("got %v, expected the sink's error", err)
	}
	sink := &heap{}
	in.Sink = sink
	var e *consensus.Error
	if err := in.Receive(wire{t, sampleAppend(wal.RequestBytesMax + 1), 1000}); !errors.As(err, &e) || e.Reason != consensus.ReasonTooLarge {
		t.Errorf("got %v, expected TOO_LARGE", err)
	}
	if sink.taken != 0 {
		t.Errorf("%d bytes were taken for a request that is too large", sink.taken)
	}
	if err := in.Receive(raw("\xff\xff\xff")); !errors.As(err, &e) || e.Reason != consensus.ReasonProtocol {
		t.Errorf("got %v, expected PROTOCOL", err)
	}
	if err := in.Receive(wire{t, sampleAppend(10), 1000}); err != nil || len(in.append.Data) != 10 {
		t.Errorf("after an error: %v, %d bytes", err, len(in.append.Data))
	}
	var a FromAcceptor
	if err := a.Receive(raw("\xff\xff\xff")); !errors.As(err, &e) || e.Reason != consensus.ReasonProtocol {
		t.Errorf("got %v, expected PROTOCOL", err)
	}
	if err := a.Receive(nothing{}); err == nil {
		t.Error("a stream without the codec was not noticed")
	}
	if err := in.Receive(nothing{}); err == nil {
		t.Error("a stream without the codec was not noticed")
	}
}

type nothing struct{}

func (nothing) RecvMsg(any) error { return nil }

func TestOtherMessagesTakeTheStandardCodec(t *testing.T) {
	m := &holdfastv1.GetTimelineRequest{Timeline: "prod/main"}
	out, err := Codec{}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var got holdfastv1.GetTimelineRequest
	if err := (Codec{}).Unmarshal(out, &got); err != nil || !protobuf.Equal(&got, m) {
		t.Errorf("got %v, %v", &got, err)
	}
	if _, err := (Codec{}).Marshal(&consensus.PeerCommit{}); err == nil {
		t.Error("a PeerCommit was encoded")
	}
}

// standardUnmarshal reads a ProposerMessage as a stock server would.
func standardUnmarshal(b mem.BufferSlice) consensus.Message {
	var pb holdfastv1.ProposerMessage
	if err := std.Unmarshal(b, &pb); err != nil {
		panic(err)
	}
	m, err := DecodeProposerMessage(&pb)
	if err != nil {
		panic(err)
	}
	return m
}
