package proto

import (
	"errors"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// AppendSink supplies the memory that WAL bytes are received into.
type AppendSink interface {
	// Take returns exactly n bytes, 1 <= n <= wal.RequestBytesMax, which the
	// caller fills and hands on in AppendRequest.Data. It is called by the goroutine
	// that called Receive and may block until there is room: that is how an
	// inbox holds a proposer back. It must come back with an error when the
	// stream ends, and Receive returns that error.
	//
	// Bytes taken for a message that then turns out to be wrong are not handed
	// on. That message ends the stream.
	Take(n int) ([]byte, error)
}

// FromProposer receives a proposer's messages at an acceptor whose server uses
// [Codec]. One value serves a whole stream and one goroutine; it holds one message at a time.
type FromProposer struct {
	Sink AppendSink

	append   consensus.AppendRequest
	control  consensus.Message // nil: append is the message
	received bool              // the codec has filled this value
	err      error
}

// Receive waits for the next message. The error of Sink and a
// *consensus.Error for a message of a wrong form come back as they are, others
// are the stream's own; io.EOF means that the proposer has closed its side.
func (m *FromProposer) Receive(stream interface{ RecvMsg(any) error }) error {
	m.append, m.control, m.received, m.err = consensus.AppendRequest{}, nil, false, nil
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	if !m.received {
		return errors.New("the stream does not use the codec of package proto")
	}
	return m.err
}

// Message is the message received last. An *AppendRequest is part of m and
// overwritten by the next Receive: copy it. Its Data is the Sink's memory.
func (m *FromProposer) Message() consensus.Message {
	if m.control != nil {
		return m.control
	}
	return &m.append
}

// Append returns the message received last if it is an append or a heartbeat.
// The result is part of m; Data is the Sink's memory, nil for a heartbeat.
func (m *FromProposer) Append() (*consensus.AppendRequest, bool) {
	return &m.append, m.control == nil
}

// unmarshal is called by Codec. What is wrong with the message is kept for
// Receive, because gRPC would turn it into text.
func (m *FromProposer) unmarshal(std encoding.CodecV2, data mem.BufferSlice) error {
	m.received = true
	total := data.Len()
	var room [appendHeaderBytes]byte
	dataAt, ok := parseAppendHeader(firstBytes(data, &room), total, &m.append)
	if ok {
		m.err = m.take(total-dataAt, func(dst []byte) { copyFrom(dst, data, dataAt) })
		return nil
	}
	var in holdfastv1.ProposerMessage
	if err := std.Unmarshal(data, &in); err != nil {
		m.err = invalid("message is not a valid ProposerMessage: %v", err)
		return nil
	}
	m.control, m.err = DecodeProposerMessage(&in)
	if r, ok := m.control.(*consensus.AppendRequest); ok {
		m.append, m.control = *r, nil
		m.append.Data = nil
		m.err = m.take(len(r.Data), func(dst []byte) { copy(dst, r.Data) })
	}
	return nil
}

// take checks m.append, which will carry n bytes, and has fill copy them into the Sink's memory.
func (m *FromProposer) take(n int, fill func([]byte)) error {
	if err := checkAppend(&m.append, n); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	dst, err := m.Sink.Take(n)
	if err != nil {
		return err
	}
	if len(dst) != n {
		return fmt.Errorf("append sink returned %d bytes, expected %d", len(dst), n)
	}
	fill(dst)
	m.append.Data = dst
	return nil
}

// firstBytes returns the first bytes of data, at least a whole header if
// there is one: those of its first buffer, or copied into room when that is short.
func firstBytes(data mem.BufferSlice, room *[appendHeaderBytes]byte) []byte {
	if len(data) == 0 {
		return nil
	}
	if b := data[0].ReadOnlyData(); len(b) >= len(room) || len(data) == 1 {
		return b
	}
	return room[:data.CopyTo(room[:])]
}

// copyFrom fills dst with the bytes of data that follow the first skip ones.
func copyFrom(dst []byte, data mem.BufferSlice, skip int) {
	for _, buffer := range data {
		b := buffer.ReadOnlyData()
		if skip >= len(b) {
			skip -= len(b)
			continue
		}
		dst = dst[copy(dst, b[skip:]):]
		skip = 0
	}
}
