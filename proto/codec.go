package proto

import (
	"github.com/seed7f3f3bb8/holdfast/consensus"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// contiguousBytesMax is the most data that is copied behind its header; more
// is sent as header and data, which saves the copy. Up to 8 KiB one buffer is
// cheaper than two.
const contiguousBytesMax = 8 << 10

// Codec is gRPC's codec "proto", with a short way for the two messages that
// every append costs. It encodes
//
//   - *consensus.AppendRequest and *consensus.AppendResponse by hand,
//   - every other consensus.Message by its conversion in this package,
//   - everything else as the standard codec does;
//
// and decodes into *[FromProposer] and *[FromAcceptor], which keep what Append
// streams bring, and into everything else as the standard codec does. The
// bytes are the same protobuf, so either side may use a stock codec.
//
// SendMsg returns before the bytes have left. An AppendRequest's Data must
// stay unchanged until the acceptor has acknowledged it or the stream has
// ended; the message itself may be reused at once.
//
// The zero value is ready and safe for concurrent use. Give it to gRPC with
// [ServerOptions] and [DialOptions].
type Codec struct{}

// std is what google.golang.org/grpc/encoding/proto registers when it is linked in.
var std = encoding.GetCodecV2(protocodec.Name)

// Name is "proto": the wire is protobuf.
func (Codec) Name() string { return protocodec.Name }

// Marshal implements encoding.CodecV2.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *consensus.AppendRequest:
		return marshalAppendRequest(m), nil
	case *consensus.AppendResponse:
		return marshalAppendResponse(m), nil
	case *consensus.Greeting, *consensus.VoteRequest, *consensus.Elected:
		out, err := EncodeProposerMessage(m.(consensus.Message))
		if err != nil {
			return nil, err
		}
		return std.Marshal(out)
	case *consensus.AcceptorGreeting, *consensus.VoteResponse:
		out, err := EncodeAcceptorMessage(m.(consensus.Message))
		if err != nil {
			return nil, err
		}
		return std.Marshal(out)
	}
	return std.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *FromProposer:
		return m.unmarshal(std, data)
	case *FromAcceptor:
		return m.unmarshal(std, data)
	}
	return std.Unmarshal(data, v)
}

// marshalAppendRequest takes one buffer from gRPC's pool for a small request,
// which gRPC gives back, and makes one allocation for a large one.
func marshalAppendRequest(r *consensus.AppendRequest) mem.BufferSlice {
	if len(r.Data) > contiguousBytesMax {
		out := new(struct {
			slice      [2]mem.Buffer
			head, data mem.SliceBuffer
			room       [appendHeaderBytes]byte
		})
		out.head = appendAppendHeader(out.room[:0], r)
		out.data = r.Data
		out.slice = [2]mem.Buffer{&out.head, &out.data}
		return out.slice[:]
	}
	size := appendHeaderBytes + len(r.Data)
	if mem.IsBelowBufferPoolingThreshold(size) {
		return single(append(appendAppendHeader(make([]byte, 0, size), r), r.Data...))
	}
	pool := mem.DefaultBufferPool()
	p := pool.Get(size)
	*p = append(appendAppendHeader((*p)[:0], r), r.Data...)
	return mem.BufferSlice{mem.NewBuffer(p, pool)}
}

// single wraps b with one allocation, where a literal would make two.
func single(b []byte) mem.BufferSlice {
	out := new(struct {
		slice [1]mem.Buffer
		b     mem.SliceBuffer
	})
	out.b = b
	out.slice[0] = &out.b
	return out.slice[:]
}

// marshalAppendResponse makes one allocation.
func marshalAppendResponse(r *consensus.AppendResponse) mem.BufferSlice {
	out := new(struct {
		slice [1]mem.Buffer
		b     mem.SliceBuffer
		room  [appendResponseBytes]byte
	})
	out.b = appendAppendResponse(out.room[:0], r)
	out.slice[0] = &out.b
	return out.slice[:]
}
