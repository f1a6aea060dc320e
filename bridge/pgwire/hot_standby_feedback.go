package pgwire

import "encoding/binary"

// HotStandbyFeedback tells a walsender the oldest transactions that a standby
// still reads. Holdfast's server accepts and ignores it: forwarding it would
// let a standby hold back vacuum on a primary it does not know.
//
//	'h'  time int64  xmin int32  epoch int32  catalogXmin int32  catalogEpoch int32
type HotStandbyFeedback struct {
	Time                      int64 // microseconds since 2000-01-01 UTC
	Xmin, Epoch               uint32
	CatalogXmin, CatalogEpoch uint32
}

const hotStandbyFeedbackBytes = 1 + 8 + 4*4

// Decode reads the body of a CopyData message.
func (m *HotStandbyFeedback) Decode(b []byte) error {
	if len(b) != hotStandbyFeedbackBytes || b[0] != 'h' {
		return malformed("hot standby feedback", "%d bytes, expected 'h' and %d bytes in all", len(b), hotStandbyFeedbackBytes)
	}
	m.Time = int64(binary.BigEndian.Uint64(b[1:]))
	m.Xmin = binary.BigEndian.Uint32(b[9:])
	m.Epoch = binary.BigEndian.Uint32(b[13:])
	m.CatalogXmin = binary.BigEndian.Uint32(b[17:])
	m.CatalogEpoch = binary.BigEndian.Uint32(b[21:])
	return nil
}

// AppendFrame appends the message as a whole CopyData frame.
func (m *HotStandbyFeedback) AppendFrame(dst []byte) []byte {
	dst = append(appendCopyDataHead(dst, hotStandbyFeedbackBytes), 'h')
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.Time))
	for _, v := range [4]uint32{m.Xmin, m.Epoch, m.CatalogXmin, m.CatalogEpoch} {
		dst = binary.BigEndian.AppendUint32(dst, v)
	}
	return dst
}
