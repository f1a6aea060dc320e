package storage

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

const (
	segmentSuffix = ".seg"
	prepareSuffix = ".tmp"
)

// segmentName is the file of segment number n: 16 hexadecimal digits.
func segmentName(n uint64) string { return fmt.Sprintf("%016x%s", n, segmentSuffix) }

func parseSegmentName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 16 || digits != strings.ToLower(digits) {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, err == nil && n > 0
}

// truncation is a state frame within a segment that cut the log.
type truncation struct {
	off int64
	end wal.LSN
}

// mark says that a data frame beginning at lsn, with sequence number seq, stands at off.
type mark struct {
	lsn wal.LSN
	off int64
	seq uint64
}

// marksPerSegment bounds what is remembered of where things are in a segment.
const marksPerSegment = 64

// segment is what is known of one segment file that belongs to the log.
type segment struct {
	number uint64
	nonce  uint64
	size   int64 // of the file

	firstSeq uint64 // the head's
	lastSeq  uint64 // of the last frame that counts; durable
	used     int64  // offset behind the last durable batch; the file's size where that is not known

	// low is the lowest end that the log had from this segment's head on: an
	// older segment holds nothing valid from there on.
	low wal.LSN

	// floor is the lowest low of this segment and all newer ones, so floors
	// never fall from segment to segment and the one that holds a position is
	// found by bisection: it is the last one whose floor is not above it.
	floor wal.LSN

	// truncs holds the truncations that a reader of this segment must know:
	// those whose end no later one reaches below; offsets and ends both rise. It
	// is replaced, never changed, because readers hold on to it. Until surveyed
	// is set it is unknown and there are some.
	truncs   []truncation
	surveyed bool

	marks []mark // rising; may be thinned out or empty

	pins    int  // readers that have the file open
	missing bool // no such file: a placeholder for what it held
	reserve bool // came from the spares: for state only while the disk is full
}

// bound is the end of what frames at off can still contribute, as far as
// truncations behind them in the same segment tell.
func bound(truncs []truncation, off int64) wal.LSN {
	i := sort.Search(len(truncs), func(i int) bool { return truncs[i].off > off })
	if i == len(truncs) {
		return EndUnknown
	}
	return truncs[i].end
}

// addTruncation returns truncs with one more that lies behind them all.
func addTruncation(truncs []truncation, t truncation) []truncation {
	n := len(truncs)
	for n > 0 && truncs[n-1].end >= t.end {
		n--
	}
	return append(slices.Clone(truncs[:n]), t)
}

// addMark remembers a frame if the last mark is far enough away.
func (s *segment) addMark(m mark) {
	last := int64(sectorBytes)
	if n := len(s.marks); n > 0 {
		last = s.marks[n-1].off
	}
	if len(s.marks) < marksPerSegment && m.off-last >= max(s.size/marksPerSegment, pageBytes) {
		s.marks = append(s.marks, m)
	}
}

// cutMarks forgets the marks at or above end.
func (s *segment) cutMarks(end wal.LSN) {
	n := len(s.marks)
	for n > 0 && s.marks[n-1].lsn >= end {
		n--
	}
	if n < len(s.marks) {
		s.marks = slices.Clone(s.marks[:n]) // a reader may be looking at the old ones
	}
}

// seek returns a place in the segment at or before the frame that covers lsn.
func (s *segment) seek(lsn wal.LSN) (off int64, seq uint64) {
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].lsn > lsn })
	if i == 0 {
		return sectorBytes, s.firstSeq
	}
	return s.marks[i-1].off, s.marks[i-1].seq
}

// table is the log's segments, oldest first, their numbers without a gap.
type table []*segment

func (t table) newest() *segment {
	if len(t) == 0 {
		return nil
	}
	return t[len(t)-1]
}

// add appends a segment.
func (t *table) add(s *segment) {
	s.floor = EndUnknown
	*t = append(*t, s)
	t.lower(s.low)
}

// lower tells the table that the log's end went down to end in its newest segment.
func (t table) lower(end wal.LSN) {
	if s := t.newest(); end < s.low {
		s.low = end
	}
	for i := len(t) - 1; i >= 0 && t[i].floor > end; i-- {
		t[i].floor = end
	}
}

// find returns the index of the segment that holds lsn, -1 if none is old enough.
func (t table) find(lsn wal.LSN) int {
	return sort.Search(len(t), func(i int) bool { return t[i].floor > lsn }) - 1
}

// liveEnd is the end of what segment i contributes to the log.
func (t table) liveEnd(i int) wal.LSN {
	if i+1 < len(t) {
		return t[i+1].floor
	}
	return EndUnknown
}

// index returns where segment number n stands, -1 if it is not there.
func (t table) index(n uint64) int {
	if len(t) == 0 || n < t[0].number || n > t[len(t)-1].number {
		return -1
	}
	return int(n - t[0].number)
}
