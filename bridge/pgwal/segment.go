package pgwal

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TLI numbers one of PostgreSQL's own timelines; they begin at 1.
type TLI uint32

// SegmentBytes is the size of a cluster's WAL segment files: a power of two
// from 1 MiB to 1 GiB, fixed when the cluster is made.
type SegmentBytes uint32

const (
	segmentBytesMin SegmentBytes = 1 << 20
	segmentBytesMax SegmentBytes = 1 << 30
)

// Validate reports a size that no cluster can have.
func (s SegmentBytes) Validate() error {
	if s < segmentBytesMin || s > segmentBytesMax || bits.OnesCount32(uint32(s)) != 1 {
		return fmt.Errorf("WAL segment size %d: expected a power of two from %d to %d bytes", uint32(s), segmentBytesMin, segmentBytesMax)
	}
	return nil
}

// String prints the size as PostgreSQL's SHOW wal_segment_size does: "16MB", "1GB".
func (s SegmentBytes) String() string {
	if s >= 1<<30 && s%(1<<30) == 0 {
		return strconv.Itoa(int(s>>30)) + "GB"
	}
	return strconv.Itoa(int(s>>20)) + "MB"
}

// ParseSegmentBytes parses the answer to SHOW wal_segment_size.
func ParseSegmentBytes(text string) (SegmentBytes, error) {
	number := strings.TrimRight(text, "kKMGB")
	unit := map[string]uint64{"": 1, "B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}[text[len(number):]]
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || unit == 0 || n*unit > uint64(segmentBytesMax) {
		return 0, fmt.Errorf("WAL segment size %q: expected a size such as 16MB", text)
	}
	s := SegmentBytes(n * unit)
	return s, s.Validate()
}

// Begin is the position at which the segment that holds lsn begins.
func (s SegmentBytes) Begin(lsn wal.LSN) wal.LSN { return lsn &^ wal.LSN(s-1) }

// Offset is lsn's byte offset in its segment.
func (s SegmentBytes) Offset(lsn wal.LSN) int { return int(lsn & wal.LSN(s-1)) }

// FileName is the name of the segment file that holds lsn on tli.
//
//	TLI, 8 hex digits | high 32 bits of the LSN | number of the segment in these 4 GiB
func (s SegmentBytes) FileName(tli TLI, lsn wal.LSN) string {
	return fmt.Sprintf("%08X%08X%08X", uint32(tli), uint32(lsn>>32), uint32(lsn)/uint32(s))
}

// ParseFileName is the inverse of FileName: the TLI and the segment's first position.
func (s SegmentBytes) ParseFileName(name string) (TLI, wal.LSN, error) {
	var part [3]uint32
	ok := len(name) == 24
	for i := range part {
		if !ok {
			break
		}
		part[i], ok = parseHex8(name[8*i : 8*i+8])
	}
	if !ok || part[0] == 0 {
		return 0, 0, fmt.Errorf("WAL file name %q: expected 24 upper-case hexadecimal digits", name)
	}
	if uint64(part[2]) >= 1<<32/uint64(s) {
		return 0, 0, fmt.Errorf("WAL file name %q: there is no segment %X of %v in 4 GiB; is the segment size right?", name, part[2], s)
	}
	return TLI(part[0]), wal.LSN(part[1])<<32 | wal.LSN(part[2])*wal.LSN(s), nil
}

// HistoryFileName is the name of tli's history file.
func HistoryFileName(tli TLI) string { return fmt.Sprintf("%08X.history", uint32(tli)) }

// ParseHistoryFileName is the inverse of HistoryFileName.
func ParseHistoryFileName(name string) (TLI, bool) {
	digits, ok := strings.CutSuffix(name, ".history")
	if !ok || len(digits) != 8 {
		return 0, false
	}
	n, ok := parseHex8(digits)
	return TLI(n), ok && n != 0
}

func parseHex8(s string) (uint32, bool) {
	var n uint32
	for _, c := range []byte(s) {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | uint32(c-'0')
		case 'A' <= c && c <= 'F':
			n = n<<4 | uint32(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, len(s) == 8
}
