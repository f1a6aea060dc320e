package pgwire

import (
	"encoding/binary"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// StatusUpdate is what a replication client reports to its walsender. A
// position of 0 means "unknown", never "everything": Holdfast's own client
// sends what it was given, without replacing one position by another.
//
//	'r'  write int64  flush int64  apply int64  time int64  replyRequested byte
type StatusUpdate struct {
	Write, Flush, Apply wal.LSN
	Time                int64 // microseconds since 2000-01-01 UTC
	ReplyRequested      bool
}

const statusUpdateBytes = 1 + 4*8 + 1

// Decode reads the body of a CopyData message.
func (m *StatusUpdate) Decode(b []byte) error {
	if len(b) != statusUpdateBytes || b[0] != 'r' {
		return malformed("status update", "%d bytes, expected 'r' and %d bytes in all", len(b), statusUpdateBytes)
	}
	m.Write = wal.LSN(binary.BigEndian.Uint64(b[1:]))
	m.Flush = wal.LSN(binary.BigEndian.Uint64(b[9:]))
	m.Apply = wal.LSN(binary.BigEndian.Uint64(b[17:]))
	m.Time = int64(binary.BigEndian.Uint64(b[25:]))
	m.ReplyRequested = b[33] != 0
	return nil
}

// AppendFrame appends the message as a whole CopyData frame.
func (m *StatusUpdate) AppendFrame(dst []byte) []byte {
	dst = append(appendCopyDataHead(dst, statusUpdateBytes), 'r')
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Write))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Flush))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Apply))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Time))
	return append(dst, boolByte(m.ReplyRequested))
}
