package pgwal

import (
	"encoding/binary"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// PageBytes is the WAL page size that PostgreSQL is built with unless someone chose another.
const PageBytes = 8 << 10

// A page begins with a header; the first page of a segment has the long one.
// All integers are little-endian here: PostgreSQL writes WAL in the machine's
// order, and so far runs where Holdfast does on such machines only.
//
//	magic u16 | info u16 | tli u32 | page LSN u64 | bytes left of a record begun earlier u32 | 0 u32
//	long: ... | system identifier u64 | segment size u32 | page size u32
const (
	pageHeaderBytes     = 24
	longPageHeaderBytes = 40

	pageFirstIsContinued   = 0x1 // the page begins inside a record
	pageLong               = 0x2
	pageFirstIsOverwritten = 0x8 // the record that should go on here was given up
)

type pageHeader struct {
	magic uint16
	info  uint16
	tli   TLI
	lsn   wal.LSN
	left  uint32
}

// headerBytes is the length of the header of the page at lsn.
func (s SegmentBytes) headerBytes(lsn wal.LSN) int {
	if s.Offset(lsn) == 0 {
		return longPageHeaderBytes
	}
	return pageHeaderBytes
}

func parsePageHeader(b []byte, at wal.LSN) (pageHeader, error) {
	h := pageHeader{
		magic: binary.LittleEndian.Uint16(b), info: binary.LittleEndian.Uint16(b[2:]), tli: TLI(binary.LittleEndian.Uint32(b[4:])),
		lsn: wal.LSN(binary.LittleEndian.Uint64(b[8:])), left: binary.LittleEndian.Uint32(b[16:]),
	}
	if h.magic>>8 != 0xD1 || h.lsn != at {
		return h, fmt.Errorf("no WAL page header at %v: magic %04X, page %v", at, h.magic, h.lsn)
	}
	return h, nil
}
