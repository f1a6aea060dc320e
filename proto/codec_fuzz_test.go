package proto

import (
	"errors"
	"reflect"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	protobuf "google.golang.org/protobuf/proto"
)

// FuzzFromProposer: for any bytes, the codec and the standard decoder accept
// the same messages and read the same from them.
func FuzzFromProposer(f *testing.F) {
	for _, m := range proposerSamples() {
		out, err := EncodeProposerMessage(m)
		if err != nil {
			f.Fatal(err)
		}
		b, err := protobuf.Marshal(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 3)
		f.Add(append(b, b...), 70)
		f.Add(b[:len(b)/2], 70)
	}
	f.Add([]byte("\x22\x0b\x11\x07\x00\x00\x00\x00\x00\x00\x00\x7a\x00"), 1)
	f.Add([]byte("\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 99)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		sink := &heap{}
		in := FromProposer{Sink: sink}
		err := in.Receive(wireBytes{b, cut})

		var pb holdfastv1.ProposerMessage
		var want consensus.Message
		wantErr := protobuf.Unmarshal(b, &pb)
		if wantErr == nil {
			want, wantErr = DecodeProposerMessage(&pb)
		}
		compare(t, in.Message, err, want, wantErr)
		if sink.taken > len(b) {
			t.Fatalf("%d bytes were taken for a message of %d", sink.taken, len(b))
		}
	})
}

// FuzzFromAcceptor is the same for the other direction.
func FuzzFromAcceptor(f *testing.F) {
	for _, m := range acceptorSamples() {
		out, err := EncodeAcceptorMessage(m)
		if err != nil {
			f.Fatal(err)
		}
		b, err := protobuf.Marshal(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 3)
		f.Add(append(b, b...), 70)
		f.Add(b[:len(b)/2], 70)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var in FromAcceptor
		err := in.Receive(wireBytes{b, cut})

		var pb holdfastv1.AcceptorMessage
		var want consensus.Message
		wantErr := protobuf.Unmarshal(b, &pb)
		if wantErr == nil {
			want, wantErr = DecodeAcceptorMessage(&pb)
		}
		compare(t, in.Message, err, want, wantErr)
	})
}

type wireBytes struct {
	b   []byte
	cut int
}

func (w wireBytes) RecvMsg(v any) error {
	return Codec{}.Unmarshal(pieces(w.b, max(1, w.cut%128)), v)
}

func compare(t *testing.T, got func() consensus.Message, err error, want consensus.Message, wantErr error) {
	t.Helper()
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("the codec says %v, the standard decoder %v", err, wantErr)
	}
	if err == nil {
		if !reflect.DeepEqual(got(), want) {
			t.Fatalf("the codec read %+v, the standard decoder %+v", got(), want)
		}
		return
	}
	var e, wantE *consensus.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not a consensus.Error", err)
	}
	if errors.As(wantErr, &wantE) && *e != *wantE {
		t.Fatalf("the codec says %v, the standard decoder %v", e, wantE)
	}
}

// FuzzAppendRequest: what the codec writes, protobuf reads back, and the
// short way of the codec reads it too.
func FuzzAppendRequest(f *testing.F) {
	f.Add(uint64(1), uint64(7), uint64(0x704E0C8), uint64(0), uint64(0), uint32(0), 0)
	f.Add(uint64(1), uint64(7), uint64(1), uint64(1<<63), uint64(1), uint32(5), 9000)
	f.Fuzz(func(t *testing.T, generation, term, begin, commit, horizon uint64, crc uint32, n int) {
		n &= 1<<15 - 1
		r := consensus.AppendRequest{Generation: generation, Term: wal.Term(term), Begin: wal.LSN(begin), Commit: wal.LSN(commit),
			Horizon: wal.LSN(horizon), CRC: crc, Data: make([]byte, n)}
		out, err := Codec{}.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Free()
		b := out.Materialize()
		var pb holdfastv1.ProposerMessage
		if err := protobuf.Unmarshal(b, &pb); err != nil {
			t.Fatal(err)
		}
		if want, _ := EncodeProposerMessage(&r); !protobuf.Equal(&pb, want) {
			t.Fatalf("protobuf reads %v, expected %v", &pb, want)
		}
		var got consensus.AppendRequest
		at, ok := parseAppendHeader(b, len(b), &got)
		got.Data = r.Data
		if !ok || len(b)-at != n || !reflect.DeepEqual(got, r) {
			t.Fatalf("the codec does not read its own bytes: %+v, data at %d of %d", got, at, len(b))
		}
	})
}
