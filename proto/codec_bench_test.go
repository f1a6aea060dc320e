package proto

import (
	"fmt"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"google.golang.org/grpc/mem"
)

// arena is an AppendSink that hands out the same memory again and again.
type arena []byte

func (a arena) Take(n int) ([]byte, error) { return a[:n], nil }

// received is a stream on which the same message, as gRPC would cut it up, arrives again and again.
type received struct{ b mem.BufferSlice }

func (r *received) RecvMsg(m any) error { return Codec{}.Unmarshal(r.b, m) }

// receivedOf cuts m into the 16 KiB frames of HTTP/2.
func receivedOf(m any) *received {
	out, err := Codec{}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return &received{pieces(out.Materialize(), 16<<10)}
}

func TestAllocations(t *testing.T) {
	for _, n := range []int{0, 128, 8 << 10, 64 << 10, 512 << 10} {
		r := sampleAppend(n)
		in := FromProposer{Sink: arena(make([]byte, n))}
		stream := receivedOf(r)
		if got := testing.AllocsPerRun(100, func() {
			if in.Receive(stream) != nil {
				panic("receive")
			}
		}); got != 0 {
			t.Errorf("receiving %d bytes allocates %v times, expected 0", n, got)
		}
		if got := testing.AllocsPerRun(100, func() { send(r) }); got > 2 {
			t.Errorf("sending %d bytes allocates %v times, expected at most 2", n, got)
		}
	}
	ack := sampleAck()
	var in FromAcceptor
	stream := receivedOf(ack)
	if got := testing.AllocsPerRun(100, func() {
		if in.Receive(stream) != nil {
			panic("receive")
		}
	}); got != 0 {
		t.Errorf("receiving an acknowledgement allocates %v times, expected 0", got)
	}
	if got := testing.AllocsPerRun(100, func() { send(ack) }); got > 1 {
		t.Errorf("sending an acknowledgement allocates %v times, expected at most 1", got)
	}
}

func send(m any) {
	out, err := Codec{}.Marshal(m)
	if err != nil {
		panic(err)
	}
	out.Free()
}

func BenchmarkAppendRequest(b *testing.B) {
	for _, n := range []int{128, 8 << 10, 64 << 10, 512 << 10} {
		r := sampleAppend(n)
		b.Run(fmt.Sprintf("marshal/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(n))
			for b.Loop() {
				send(r)
			}
		})
		b.Run(fmt.Sprintf("marshal-standard/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(n))
			for b.Loop() {
				pb, _ := EncodeProposerMessage(r)
				out, _ := std.Marshal(pb)
				out.Free()
			}
		})
		stream := receivedOf(r)
		b.Run(fmt.Sprintf("unmarshal/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(n))
			in := FromProposer{Sink: arena(make([]byte, n))}
			for b.Loop() {
				_ = in.Receive(stream)
			}
		})
		b.Run(fmt.Sprintf("unmarshal-standard/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(n))
			for b.Loop() {
				standardUnmarshal(stream.b)
			}
		})
	}
}

func BenchmarkAppendResponse(b *testing.B) {
	ack := sampleAck()
	stream := receivedOf(ack)
	b.Run("marshal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			send(ack)
		}
	})
	b.Run("unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		var in FromAcceptor
		for b.Loop() {
			_ = in.Receive(stream)
		}
	})
}

func BenchmarkHeader(b *testing.B) {
	r := sampleAppend(8 << 10)
	room := appendAppendHeader(nil, r)
	var got consensus.AppendRequest
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			room = appendAppendHeader(room[:0], r)
		}
	})
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			parseAppendHeader(room, len(room)+len(r.Data), &got)
		}
	})
}
