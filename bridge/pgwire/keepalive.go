package pgwire

import (
	"encoding/binary"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Keepalive is the walsender's sign of life.
//
//	'k'  serverEnd int64  time int64  replyRequested byte
type Keepalive struct {
	ServerEnd      wal.LSN
	Time           int64 // microseconds since 2000-01-01 UTC
	ReplyRequested bool  // answer at once with a status update
}

const keepaliveBytes = 1 + 8 + 8 + 1

// Decode reads the body of a CopyData message.
func (m *Keepalive) Decode(b []byte) error {
	if len(b) != keepaliveBytes || b[0] != 'k' {
		return malformed("keepalive", "%d bytes, expected 'k' and %d bytes in all", len(b), keepaliveBytes)
	}
	m.ServerEnd = wal.LSN(binary.BigEndian.Uint64(b[1:]))
	m.Time = int64(binary.BigEndian.Uint64(b[9:]))
	m.ReplyRequested = b[17] != 0
	return nil
}

// AppendFrame appends the message as a whole CopyData frame.
func (m *Keepalive) AppendFrame(dst []byte) []byte {
	dst = append(appendCopyDataHead(dst, keepaliveBytes), 'k')
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.ServerEnd))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Time))
	return append(dst, boolByte(m.ReplyRequested))
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}
