package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Everything on disk is little-endian. A segment file is one sector of header
// and then frames; the first frame of a segment that belongs to a log is its head.
//
//	segment header, at offset 0, one 512-byte sector:
//	  0  8  magic "HOLDFAST"
//	  8  4  CRC-32C of bytes 12 to 511
//	 12  4  format version, 1
//	 16  8  segment number, as in the file's name; 0 in a spare
//	 24  8  nonce, random for every life of the file
//	 32  8  file size in bytes, a multiple of 512
//	 40 472 zero
//
//	frame, at a multiple of 8; the first one of a batch at a multiple of 512:
//	  0  4  CRC-32C of bytes 4 to 71
//	  4  4  CRC-32C of the payload (of data: its writer's own, end to end)
//	  8  8  nonce of the segment
//	 16  8  segment number
//	 24  8  sequence number: one count over the whole log, from 1
//	 32  8  last sequence number known durable when this frame was written
//	 40  8  term: of the data's writer; of a state, its term
//	 48  8  LSN: of data, where it begins; of a state, the log's end
//	 56  8  commit LSN known when this frame was written
//	 64  4  payload length in bytes, without padding
//	 68  1  kind: 1 data, 2 state
//	 69  1  flags: 1 head, 2 seal; of state frames only
//	 70  2  zero
//	 72     payload, then zeroes to a multiple of 8; behind a batch's last frame, to a multiple of 512
const (
	sectorBytes      = 512
	frameHeaderBytes = 72
	formatVersion    = 1

	kindData  = 1
	kindState = 2

	flagHead = 1
	flagSeal = 2
)

var segmentMagic = [8]byte{'H', 'O', 'L', 'D', 'F', 'A', 'S', 'T'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func pad8(n int64) int64        { return (n + 7) &^ 7 }
func alignSector(n int64) int64 { return (n + sectorBytes - 1) &^ (sectorBytes - 1) }

func alignPage(n int64) int64 { return (n + pageBytes - 1) &^ (pageBytes - 1) }

// frameBytes is what a frame with so much payload takes, without the batch's padding.
func frameBytes(payload int) int64 { return frameHeaderBytes + pad8(int64(payload)) }

// segmentHeader is the first sector of a segment file.
type segmentHeader struct {
	number uint64
	nonce  uint64
	size   int64
}

func (h segmentHeader) encode() []byte {
	b := make([]byte, sectorBytes)
	copy(b, segmentMagic[:])
	le := binary.LittleEndian
	le.PutUint32(b[12:], formatVersion)
	le.PutUint64(b[16:], h.number)
	le.PutUint64(b[24:], h.nonce)
	le.PutUint64(b[32:], uint64(h.size))
	le.PutUint32(b[8:], checksum(b[12:]))
	return b
}

func decodeSegmentHeader(b []byte) (segmentHeader, error) {
	le := binary.LittleEndian
	switch {
	case len(b) < sectorBytes:
		return segmentHeader{}, fmt.Errorf("the file holds %d bytes; a segment header takes %d", len(b), sectorBytes)
	case !bytes.Equal(b[:8], segmentMagic[:]):
		return segmentHeader{}, fmt.Errorf("no segment header: it begins with %x instead of %x", b[:8], segmentMagic)
	case checksum(b[12:sectorBytes]) != le.Uint32(b[8:]):
		return segmentHeader{}, fmt.Errorf("the segment header does not match its checksum")
	case le.Uint32(b[12:]) != formatVersion:
		return segmentHeader{}, fmt.Errorf("format version %d; this program knows version %d", le.Uint32(b[12:]), formatVersion)
	}
	h := segmentHeader{number: le.Uint64(b[16:]), nonce: le.Uint64(b[24:]), size: int64(le.Uint64(b[32:]))}
	if h.size < 2*sectorBytes || h.size%sectorBytes != 0 {
		return segmentHeader{}, fmt.Errorf("the segment header gives a size of %d bytes, which is not a multiple of %d", h.size, sectorBytes)
	}
	return h, nil
}

// frameHeader is what precedes every payload.
type frameHeader struct {
	payloadCRC uint32
	nonce      uint64
	segment    uint64
	seq        uint64
	durable    uint64
	term       wal.Term
	lsn        wal.LSN
	commit     wal.LSN
	length     uint32
	kind       uint8
	flags      uint8
}

// put writes the header into the first 72 bytes of b.
func (h *frameHeader) put(b []byte) {
	le := binary.LittleEndian
	_ = b[frameHeaderBytes-1]
	le.PutUint32(b[4:], h.payloadCRC)
	le.PutUint64(b[8:], h.nonce)
	le.PutUint64(b[16:], h.segment)
	le.PutUint64(b[24:], h.seq)
	le.PutUint64(b[32:], h.durable)
	le.PutUint64(b[40:], uint64(h.term))
	le.PutUint64(b[48:], uint64(h.lsn))
	le.PutUint64(b[56:], uint64(h.commit))
	le.PutUint32(b[64:], h.length)
	b[68], b[69], b[70], b[71] = h.kind, h.flags, 0, 0
	le.PutUint32(b, checksum(b[4:frameHeaderBytes]))
}

// decodeFrameHeader reports whether b begins with a sound frame header. Whether the
// frame belongs where it was found is for the caller to judge: nonce, segment
// and sequence number say so.
func decodeFrameHeader(b []byte) (h frameHeader, ok bool) {
	le := binary.LittleEndian
	if len(b) < frameHeaderBytes || checksum(b[4:frameHeaderBytes]) != le.Uint32(b) {
		return h, false
	}
	h = frameHeader{
		payloadCRC: le.Uint32(b[4:]),
		nonce:      le.Uint64(b[8:]),
		segment:    le.Uint64(b[16:]),
		seq:        le.Uint64(b[24:]),
		durable:    le.Uint64(b[32:]),
		term:       wal.Term(le.Uint64(b[40:])),
		lsn:        wal.LSN(le.Uint64(b[48:])),
		commit:     wal.LSN(le.Uint64(b[56:])),
		length:     le.Uint32(b[64:]),
		kind:       b[68],
		flags:      b[69],
	}
	return h, h.sound()
}

// sound checks what no writer of this program gets wrong.
func (h *frameHeader) sound() bool {
	switch h.kind {
	case kindData:
		if h.flags != 0 || h.length == 0 || h.lsn+wal.LSN(h.length) < h.lsn {
			return false
		}
	case kindState:
		if h.flags&^(flagHead|flagSeal) != 0 {
			return false
		}
	default:
		return false
	}
	return h.seq > 0 && h.durable < h.seq
}

func (h *frameHeader) isHead() bool { return h.kind == kindState && h.flags&flagHead != 0 }
func (h *frameHeader) isSeal() bool { return h.kind == kindState && h.flags&flagSeal != 0 }

// end is the position behind a data frame's last byte; a state frame's own LSN.
func (h *frameHeader) end() wal.LSN {
	if h.kind == kindData {
		return h.lsn + wal.LSN(h.length)
	}
	return h.lsn
}
