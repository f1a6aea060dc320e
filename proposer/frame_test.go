package proposer

import (
	"bytes"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	protobuf "google.golang.org/protobuf/proto"
)

// What a frame puts on the wire is what protobuf reads, at every size, and its
// memory comes back exactly when the last stream has let go of it.
func TestFrameIsSharedAndComesBack(t *testing.T) {
	pool := newChunkPool(1<<20, 1)
	for _, n := range []int{1, 100, roomBytesMin - 1, roomBytesMin, contiguousBytesMax, contiguousBytesMax + 1, 200_000, wal.RequestBytesMax} {
		k := pool.get()
		k.begin, k.buf = 1000, k.buf[:1000+n]
		for i := range k.buf {
			k.buf[i] = byte(i * 7)
		}
		f := newFrame(consensus.AppendRequest{Generation: 1, Term: 7, Begin: 2000, Commit: 5, Horizon: 4}, k, k.buf[1000:])
		k.release() // the window's
		if f.begin() != 2000 || f.end() != 2000+wal.LSN(n) {
			t.Fatalf("frame [%v, %v)", f.begin(), f.end())
		}
		type reference interface{ Free() }
		var streams []reference
		for range 3 {
			f.retain()
			f.encode()
			wire, err := codec{}.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			var m holdfastv1.ProposerMessage
			if err := protobuf.Unmarshal(wire.Materialize(), &m); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			got, err := proto.DecodeProposerMessage(&m)
			if err != nil {
				t.Fatal(err)
			}
			r := got.(*consensus.AppendRequest)
			if r.Begin != 2000 || r.Term != 7 || r.Commit != 5 || r.Horizon != 4 || r.CRC != wal.Checksum(r.Data) || !bytes.Equal(r.Data, k.buf[1000:]) {
				t.Fatalf("%d bytes: a stock peer reads %v", n, r.Begin)
			}
			streams = append(streams, wire)
			f.release()
		}
		f.release() // the list's
		for _, s := range streams {
			if k.refs.Load() != 1 {
				t.Fatalf("%d bytes: the chunk has %d references while a stream holds the frame", n, k.refs.Load())
			}
			s.Free()
		}
		if k.refs.Load() != 0 || pool.get() != k {
			t.Fatalf("%d bytes: the chunk did not come back", n)
		}
		pool.put(k)
	}
}

func TestFrameThatNobodySent(t *testing.T) {
	pool := newChunkPool(4096, 1)
	k := pool.get()
	k.buf = k.buf[:100]
	newFrame(consensus.AppendRequest{}, k, k.buf).release()
	if k.refs.Load() != 1 {
		t.Errorf("%d references", k.refs.Load())
	}
}

func BenchmarkFrame(b *testing.B) {
	for _, n := range []int{128, 8 << 10, 64 << 10} {
		b.Run(byteCount(n), func(b *testing.B) {
			k := newChunkPool(1<<20, 1).get()
			data := k.buf[:n]
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				f := newFrame(consensus.AppendRequest{}, k, data)
				f.encode()
				wire, _ := codec{}.Marshal(f)
				f.release()
				wire.Free()
			}
		})
	}
}

func byteCount(n int) string {
	return map[int]string{128: "128B", 8 << 10: "8KiB", 64 << 10: "64KiB"}[n]
}
