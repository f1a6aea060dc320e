package pgwal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Tail walks over WAL records to find whether a log ends inside one. It looks
// at record lengths and page headers only; it checks no checksum and decodes no
// record. Feed it a log's bytes from a segment's begin to its end.
//
// The log of a primary that died may end where a page does, inside a record:
// PostgreSQL sends and flushes whole pages. A server that recovers from such a
// log would fork at the record's begin, below what is committed. [Tail.Closing]
// is what PostgreSQL itself writes after a crash to give such a record up.
type Tail struct {
	segment  SegmentBytes
	systemID uint64

	pos     wal.LSN // of the next byte
	synced  bool    // a record's begin has been found
	page    pageHeader
	pageBuf []byte // of a page header that is not complete

	last   wal.LSN // begin of the last whole record, 0 = none yet
	record wal.LSN // begin of the record that is under way, 0 = none
	header []byte  // its header, as far as it has come
	left   uint64  // bytes of it that are still to come; meaningful once its length is known
	skip   uint64  // padding behind a record, or the rest of one that began before
	jump   bool    // the last record was a segment switch: nothing follows in the segment
}

const recordHeaderBytes = 24

// Fields of a record's header:
//
//	total length u32 | xid u32 | previous record u64 | info u8 | resource manager u8 | 0 u16 | CRC-32C u32
const (
	recordPrevAt   = 8
	recordInfoAt   = 16
	recordRmgrAt   = 17
	recordCRCAt    = 20
	rmgrXLOG       = 0
	infoSwitch     = 0x40
	infoOverwrite  = 0xD0
	recordBytesMax = 1 << 30
)

// NewTail starts at begin, a segment's first position.
func NewTail(segment SegmentBytes, begin wal.LSN) *Tail {
	return &Tail{segment: segment, pos: begin}
}

// Feed takes the next bytes of the log.
func (t *Tail) Feed(b []byte) error {
	for len(b) > 0 {
		if t.jump {
			n := min(uint64(len(b)), uint64(t.segment)-uint64(t.segment.Offset(t.pos)))
			b = b[n:]
			t.pos += wal.LSN(n)
			t.jump = t.segment.Offset(t.pos) != 0
			continue
		}
		var n int
		var err error
		if t.pos%PageBytes == 0 || len(t.pageBuf) > 0 {
			n, err = t.pageHead(b)
		} else {
			n, err = t.content(b[:min(uint64(len(b)), uint64(PageBytes-t.pos%PageBytes))])
		}
		if err != nil {
			return err
		}
		b = b[n:]
		t.pos += wal.LSN(n)
	}
	return nil
}

// pageHead takes bytes of a page header, and judges it when it is complete.
func (t *Tail) pageHead(b []byte) (int, error) {
	at := t.pos - wal.LSN(len(t.pageBuf))
	size := t.segment.headerBytes(at)
	n := min(size-len(t.pageBuf), len(b))
	if t.pageBuf = append(t.pageBuf, b[:n]...); len(t.pageBuf) < size {
		return n, nil
	}
	h, err := parsePageHeader(t.pageBuf, at)
	if err != nil {
		return n, err
	}
	if size == longPageHeaderBytes {
		t.systemID = binary.LittleEndian.Uint64(t.pageBuf[pageHeaderBytes:])
	}
	t.page, t.pageBuf = h, t.pageBuf[:0]
	room := uint64(PageBytes - size)
	switch {
	case h.info&pageFirstIsOverwritten != 0:
		t.record, t.header, t.skip, t.synced = 0, t.header[:0], 0, true
	case !t.synced && h.info&pageFirstIsContinued != 0:
		if uint64(h.left) <= room {
			t.skip, t.synced = aligned(uint64(h.left)), true
		}
	case !t.synced:
		t.synced = true
	case t.record != 0 && (h.info&pageFirstIsContinued == 0 || uint64(h.left) != t.left):
		return n, fmt.Errorf("the page at %v does not go on with the record of %v: %d bytes are left of it, the page says %d", at, t.record, t.left, h.left)
	}
	return n, nil
}

func aligned(n uint64) uint64 { return (n + 7) &^ 7 }

// content takes bytes that lie in one page and returns how many it has used.
func (t *Tail) content(b []byte) (int, error) {
	if !t.synced {
		return len(b), nil
	}
	if t.skip > 0 {
		n := min(t.skip, uint64(len(b)))
		t.skip -= n
		return int(n), nil
	}
	if t.record == 0 {
		t.record, t.header = t.pos, t.header[:0]
	}
	if len(t.header) < recordHeaderBytes {
		// The length comes first and never straddles a page.
		n := min(recordHeaderBytes-len(t.header), len(b))
		t.header = append(t.header, b[:n]...)
		if len(t.header) >= 4 {
			total := binary.LittleEndian.Uint32(t.header)
			if total < recordHeaderBytes || total > recordBytesMax {
				return n, fmt.Errorf("the record at %v says that it has %d bytes", t.record, total)
			}
			t.left = uint64(total) - uint64(len(t.header))
			t.whole()
		}
		return n, nil
	}
	n := min(t.left, uint64(len(b)))
	t.left -= n
	t.whole()
	return int(n), nil
}

// whole ends the record that is under way if nothing of it is left.
func (t *Tail) whole() {
	if t.left != 0 || len(t.header) < recordHeaderBytes {
		return
	}
	total := uint64(binary.LittleEndian.Uint32(t.header))
	t.last, t.record = t.record, 0
	t.skip = aligned(total) - total
	t.jump = t.header[recordRmgrAt] == rmgrXLOG && t.header[recordInfoAt]&0xF0 == infoSwitch
}

// Open returns the begin of the record inside which the log ends, false if it
// ends between two records.
func (t *Tail) Open() (wal.LSN, bool) {
	return t.record, t.record != 0
}

// Complete reports whether the walk found where a whole record lies; if not, it
// must begin at an earlier segment.
func (t *Tail) Complete() bool { return t.synced && t.last != 0 }

// Closing returns the bytes to append to a log that ends inside a record: a new
// page whose header says that the record is given up, and the record that says
// so to recovery. Nil if there is nothing to close. A log that does not end
// where a page does cannot be closed.
func (t *Tail) Closing(now time.Time) ([]byte, error) {
	open, is := t.Open()
	if !is {
		return nil, nil
	}
	if t.pos%PageBytes != 0 {
		return nil, fmt.Errorf("the log ends at %v, inside the record of %v and inside a page", t.pos, open)
	}
	if t.last == 0 {
		return nil, fmt.Errorf("the record before %v is not known", open)
	}
	n := t.segment.headerBytes(t.pos)
	b := make([]byte, n, n+48)
	binary.LittleEndian.PutUint16(b, t.page.magic)
	info := uint16(pageFirstIsOverwritten)
	if n == longPageHeaderBytes {
		info |= pageLong
		binary.LittleEndian.PutUint64(b[24:], t.systemID)
		binary.LittleEndian.PutUint32(b[32:], uint32(t.segment))
		binary.LittleEndian.PutUint32(b[36:], PageBytes)
	}
	binary.LittleEndian.PutUint16(b[2:], info)
	binary.LittleEndian.PutUint32(b[4:], uint32(t.page.tli))
	binary.LittleEndian.PutUint64(b[8:], uint64(t.pos))
	return append(b, t.overwriteRecord(open, now)...), nil
}

// overwriteRecord is PostgreSQL's XLOG_OVERWRITE_CONTRECORD, padded to 8 bytes.
//
//	header | 0xFF: main data, short | 16 | position of the record given up u64 | time u64
func (t *Tail) overwriteRecord(open wal.LSN, now time.Time) []byte {
	const total = recordHeaderBytes + 2 + 16
	r := make([]byte, aligned(total))
	binary.LittleEndian.PutUint32(r, total)
	binary.LittleEndian.PutUint64(r[recordPrevAt:], uint64(t.last))
	r[recordInfoAt], r[recordRmgrAt] = infoOverwrite, rmgrXLOG
	data := r[recordHeaderBytes:total]
	data[0], data[1] = 0xFF, 16
	binary.LittleEndian.PutUint64(data[2:], uint64(open))
	binary.LittleEndian.PutUint64(data[10:], uint64(now.UnixMicro()-946684800*1_000_000))
	table := crc32.MakeTable(crc32.Castagnoli)
	crc := crc32.Update(crc32.Checksum(data, table), table, r[:recordCRCAt])
	binary.LittleEndian.PutUint32(r[recordCRCAt:], crc)
	return r
}
