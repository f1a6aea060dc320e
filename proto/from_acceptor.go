package proto

import (
	"encoding/binary"
	"errors"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// FromAcceptor receives an acceptor's messages at a proposer whose connection
// uses [Codec]. One value serves a whole stream and one goroutine; it holds
// one message at a time.
type FromAcceptor struct {
	append   consensus.AppendResponse
	control  consensus.Message // nil: append is the message
	received bool
	err      error
}

// Receive waits for the next message. A *consensus.Error for a message of a
// wrong form comes back as it is; others are the stream's own: see FromStatus.
func (m *FromAcceptor) Receive(stream interface{ RecvMsg(any) error }) error {
	m.append, m.control, m.received, m.err = consensus.AppendResponse{}, nil, false, nil
	if err := stream.RecvMsg(m); err != nil {
		return err
	}
	if !m.received {
		return errors.New("the stream does not use the codec of package proto")
	}
	return m.err
}

// Message is the message received last. An *AppendResponse is part of m and
// overwritten by the next Receive: copy it.
func (m *FromAcceptor) Message() consensus.Message {
	if m.control != nil {
		return m.control
	}
	return &m.append
}

// Append returns the message received last if it is an AppendResponse. The
// result is part of m.
func (m *FromAcceptor) Append() (*consensus.AppendResponse, bool) {
	return &m.append, m.control == nil
}

func (m *FromAcceptor) unmarshal(std encoding.CodecV2, data mem.BufferSlice) error {
	m.received = true
	var room [appendResponseBytes]byte
	if head := room[:data.CopyTo(room[:])]; parseAppendResponse(head, data.Len(), &m.append) {
		m.err = checkAppendResponse(&m.append)
		return nil
	}
	var in holdfastv1.AcceptorMessage
	if err := std.Unmarshal(data, &in); err != nil {
		m.err = invalid("message is not a valid AcceptorMessage: %v", err)
		return nil
	}
	m.control, m.err = DecodeAcceptorMessage(&in)
	if r, ok := m.control.(*consensus.AppendResponse); ok {
		m.append, m.control = *r, nil
	}
	return nil
}

// The bytes of an AppendResponse, as it stands in an AcceptorMessage:
//
//	1A LL          AcceptorMessage.append_response (field 3, length-delimited), varint length of all below
//	09 8 bytes     term
//	11 8 bytes     flush_lsn
//	19 8 bytes     commit_lsn
//	20 varint      queue_nanos
//	28 varint      write_nanos
//	30 varint      sync_nanos
//
// A field that is zero is left out.
const (
	tagAppendResponse = 3<<3 | 2
	tagAckTerm        = 1<<3 | 1
	tagAckFlush       = 2<<3 | 1
	tagAckCommit      = 3<<3 | 1
	tagAckQueue       = 4 << 3
	tagAckWrite       = 5 << 3
	tagAckSync        = 6 << 3

	appendResponseBytes = 2 + 3*9 + 3*(1+binary.MaxVarintLen64) // the most that one takes
)

// appendAppendResponse appends r's encoding.
func appendAppendResponse(b []byte, r *consensus.AppendResponse) []byte {
	start := len(b)
	b = append(b, tagAppendResponse, 0)
	for _, f := range [3]struct {
		tag byte
		v   uint64
	}{{tagAckTerm, uint64(r.Term)}, {tagAckFlush, uint64(r.Flush)}, {tagAckCommit, uint64(r.Commit)}} {
		if f.v != 0 {
			b = binary.LittleEndian.AppendUint64(append(b, f.tag), f.v)
		}
	}
	for _, f := range [3]struct {
		tag byte
		v   uint64
	}{{tagAckQueue, r.Stages.QueueNanos}, {tagAckWrite, r.Stages.WriteNanos}, {tagAckSync, r.Stages.SyncNanos}} {
		if f.v != 0 {
			b = binary.AppendUvarint(append(b, f.tag), f.v)
		}
	}
	b[start+1] = byte(len(b) - start - 2) // at most 60: one byte
	return b
}

// parseAppendResponse reads a message of total bytes whose first ones are
// head. Whatever it does not know is not ok and left to the standard decoder.
func parseAppendResponse(head []byte, total int, r *consensus.AppendResponse) (ok bool) {
	if len(head) != total || total < 2 || head[0] != tagAppendResponse || int(head[1]) != total-2 {
		return false
	}
	*r = consensus.AppendResponse{}
	for i := 2; i < total; {
		tag := head[i]
		i++
		var v uint64
		switch tag {
		case tagAckTerm, tagAckFlush, tagAckCommit:
			if total-i < 8 {
				return false
			}
			v = binary.LittleEndian.Uint64(head[i:])
			i += 8
		case tagAckQueue, tagAckWrite, tagAckSync:
			var n int
			if v, n = binary.Uvarint(head[i:]); n <= 0 {
				return false
			}
			i += n
		default:
			return false
		}
		switch tag {
		case tagAckTerm:
			r.Term = wal.Term(v)
		case tagAckFlush:
			r.Flush = wal.LSN(v)
		case tagAckCommit:
			r.Commit = wal.LSN(v)
		case tagAckQueue:
			r.Stages.QueueNanos = v
		case tagAckWrite:
			r.Stages.WriteNanos = v
		default:
			r.Stages.SyncNanos = v
		}
	}
	return true
}
