package logsink

import (
	"fmt"
	"iter"
	"strconv"
	"time"
	"unicode/utf8"
)

// part is a piece of a message: number number of count, from 1.
type part struct {
	text          []byte
	number, count int
}

// split cuts text into pieces of at most limit bytes, between characters. It
// looks at no more than three bytes around each cut, so its cost is that of handing out the pieces.
// An empty text is one empty piece.
func split(text []byte, limit int) iter.Seq[part] {
	return func(yield func(part) bool) {
		count := 0
		for rest := text; count == 0 || len(rest) > 0; count++ {
			rest = rest[cutAt(rest, limit):]
		}
		rest := text
		for number := 1; number <= count; number++ {
			n := cutAt(rest, limit)
			if !yield(part{rest[:n], number, count}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// cutAt is where the first piece of text ends: at limit, or up to three bytes
// before if a character begins there and goes over it. Bytes that are no UTF-8 are cut at limit.
func cutAt(text []byte, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	for n := limit; n > limit-utf8.UTFMax && n > 0; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return limit
}

// packetHead writes what stands before the text:
//
//	<PRI>1 TIME HOST APP PID - [meta sequenceId="N"] [MESSAGE-PART/PARTS] text
type packetHead struct {
	facility int
	from     string // HOST APP PID

	packets  uint64 // sent so far
	messages uint64
	time     string
	priority int
}

// begin begins the next message.
func (h *packetHead) begin(severity byte, at time.Time) {
	h.messages++
	h.priority = h.facility*8 + int(severity)
	h.time = at.Format("2006-01-02T15:04:05.000000Z")
}

// append appends the packet that carries p.
func (h *packetHead) append(b []byte, p part) []byte {
	// RFC 5424: from 1 to 2147483647, then 1 again.
	sequence := h.packets%(1<<31-1) + 1
	h.packets++
	b = fmt.Appendf(b, "<%d>1 %s %s - [meta sequenceId=\"", h.priority, h.time, h.from)
	b = strconv.AppendUint(b, sequence, 10)
	b = fmt.Appendf(b, "\"] [%d-%d/%d] ", h.messages, p.number, p.count)
	return append(b, p.text...)
}
