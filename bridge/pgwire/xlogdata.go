package pgwire

import (
	"encoding/binary"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// XLogData carries WAL from a walsender to its client.
//
//	'w'  start int64  serverEnd int64  time int64  WAL...
type XLogData struct {
	Start     wal.LSN // position of the first byte of Data
	ServerEnd wal.LSN // end of what the sender could send now
	Time      int64   // microseconds since 2000-01-01 UTC
	Data      []byte
}

// XLogDataHeaderBytes is what precedes the WAL inside CopyData.
const XLogDataHeaderBytes = 1 + 8 + 8 + 8

// Decode reads the body of a CopyData message. Data shares b's memory.
func (m *XLogData) Decode(b []byte) error {
	if len(b) < XLogDataHeaderBytes || b[0] != 'w' {
		return malformed("XLogData", "%d bytes, expected 'w' and a header of %d bytes", len(b), XLogDataHeaderBytes)
	}
	m.Start = wal.LSN(binary.BigEndian.Uint64(b[1:]))
	m.ServerEnd = wal.LSN(binary.BigEndian.Uint64(b[9:]))
	m.Time = int64(binary.BigEndian.Uint64(b[17:]))
	m.Data = b[XLogDataHeaderBytes:]
	if m.Start+wal.LSN(len(m.Data)) < m.Start {
		return malformed("XLogData", "%d bytes at %v run past the last position", len(m.Data), m.Start)
	}
	return nil
}

// AppendHeader appends the CopyData frame's head and the XLogData header; the
// caller writes m.Data behind it, so that WAL is not copied into the frame.
func (m *XLogData) AppendHeader(dst []byte) []byte {
	dst = appendCopyDataHead(dst, XLogDataHeaderBytes+len(m.Data))
	dst = append(dst, 'w')
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Start))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.ServerEnd))
	return binary.BigEndian.AppendUint64(dst, uint64(m.Time))
}

// appendCopyDataHead appends the head of a CopyData message whose body has n bytes.
//
//	'd'  length int32, itself included
func appendCopyDataHead(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, 'd'), uint32(4+n))
}
