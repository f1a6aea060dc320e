package proposer

import (
	"sync"
	"sync/atomic"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc/mem"
)

// contiguousBytesMax is the most data that is copied behind its header; more
// goes out as header and shared window memory. One buffer is cheaper than two
// for gRPC up to about 8 KiB.
const contiguousBytesMax = 8 << 10

// roomBytesMin is what a frame's own memory begins with. It is more than what
// package mem considers too little to be worth counting references to.
const roomBytesMin = 2 << 10

// frame is one cut of the window: one AppendRequest, encoded once for all the
// streams on which it goes out.
//
// Its memory is reused when nobody refers to it: first the holders in this
// package (refs), then, since a send returns before the bytes have left, the
// transports, whose references gRPC counts in the buffer.
type frame struct {
	request consensus.AppendRequest // Data lies in chunk
	chunk   *chunk

	refs atomic.Int32

	mu     sync.Mutex // guards the encoding
	buffer mem.Buffer // the last of wire, nil until encoded; holds one reference to itself

	// wire is the header with a copy of the data in one buffer, or the header and
	// the data where it lies.
	wire  mem.BufferSlice
	slots [2]mem.Buffer
	head  mem.SliceBuffer
	data  []byte // what buffer was made of
	room  []byte // memory of the header, and of the copy
}

func (f *frame) begin() wal.LSN { return f.request.Begin }
func (f *frame) end() wal.LSN   { return f.request.Begin + wal.LSN(len(f.request.Data)) }

var framePool = sync.Pool{New: func() any { return &frame{room: make([]byte, 0, roomBytesMin)} }}

// newFrame cuts data, which lies in c. The caller holds the one reference.
func newFrame(r consensus.AppendRequest, c *chunk, data []byte) *frame {
	f := framePool.Get().(*frame)
	c.refs.Add(1)
	f.request, f.chunk = r, c
	f.request.Data = data[:len(data):len(data)]
	f.refs.Store(1)
	return f
}

// retain adds a holder.
func (f *frame) retain() { f.refs.Add(1) }

// release takes one away.
func (f *frame) release() {
	if f.refs.Add(-1) > 0 {
		return
	}
	if f.buffer == nil {
		f.recycle()
		return
	}
	f.buffer.Free() // the transports' last one calls Put
}

// Put implements mem.BufferPool: gRPC is done with the buffer.
func (f *frame) Put(*[]byte) { f.recycle() }

// Get implements mem.BufferPool. A buffer is never taken from a frame.
func (f *frame) Get(n int) *[]byte { b := make([]byte, n); return &b }

func (f *frame) recycle() {
	f.chunk.release()
	f.chunk, f.buffer, f.wire, f.slots, f.data, f.request.Data = nil, nil, nil, [2]mem.Buffer{}, nil, nil
	framePool.Put(f)
}

// encode makes wire, unless that is done. Every holder calls it before it sends.
func (f *frame) encode() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.buffer != nil {
		return
	}
	data := f.request.Data
	f.request.CRC = wal.Checksum(data)
	if len(data) > contiguousBytesMax {
		f.head = proto.AppendHeader(f.room[:0], &f.request)
		f.data = data
		f.buffer = mem.NewBuffer(&f.data, f)
		f.slots = [2]mem.Buffer{&f.head, f.buffer}
		f.wire = f.slots[:]
		return
	}
	if proto.AppendHeaderBytesMax+len(data) > cap(f.room) {
		f.room = make([]byte, 0, proto.AppendHeaderBytesMax+contiguousBytesMax)
	}
	f.data = append(proto.AppendHeader(f.room[:0], &f.request), data...)
	f.buffer = mem.NewBuffer(&f.data, f)
	f.slots[0] = f.buffer
	f.wire = f.slots[:1]
}

// codec sends frames as they are encoded and everything else like package proto.
type codec struct{ proto.Codec }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		f.wire.Ref()
		return f.wire, nil
	}
	return c.Codec.Marshal(v)
}
