package blockdev

// EventKind is what happened to a disk.
type EventKind byte

// The kinds.
const (
	Write EventKind = iota // Data at At
	Flush                  // all writes in front of it are durable
	Note                   // what the caller of Mark had to say
)

// Event is one thing that happened, in its place.
type Event struct {
	Kind EventKind
	At   int64
	Data []byte
	Note any
}

// History is a recording: what a disk held, and what happened to it.
type History struct {
	Base   []byte
	Events []Event
}

// Fate is what becomes of a write that was not flushed when the power fails.
type Fate byte

// The fates.
const (
	Dropped Fate = iota
	Kept
	Torn // each sector by itself is kept or not
)

// Player goes through a history, forward only, and makes images of what a disk
// may hold when the power fails at that moment.
type Player struct {
	// Lies is how many of the last flushes the disk said it did and did not
	// do. It is set before the first Seek.
	Lies int

	history *History
	durable []byte // Base and all writes that were flushed
	flushed int    // index of the first event that is not behind the last flush
	at      int    // index of the moment: events before it have happened
	flushes []int  // the last flushes, Lies of them, by index
}

// NewPlayer begins before the first event.
func NewPlayer(h *History) *Player {
	return &Player{history: h, durable: append([]byte(nil), h.Base...)}
}

// Seek goes on to the moment before event n.
func (p *Player) Seek(n int) {
	for ; p.at < n; p.at++ {
		if p.history.Events[p.at].Kind != Flush {
			continue
		}
		if p.flushes = append(p.flushes, p.at); len(p.flushes) > p.Lies {
			p.forward(p.flushes[0])
			p.flushes = p.flushes[1:]
		}
	}
}

// forward makes what is in front of event n durable.
func (p *Player) forward(n int) {
	for ; p.flushed < n; p.flushed++ {
		if e := &p.history.Events[p.flushed]; e.Kind == Write {
			copy(p.durable[e.At:], e.Data)
		}
	}
}

// Pending counts the writes that were not flushed.
func (p *Player) Pending() int {
	n := 0
	for i := p.flushed; i < p.at; i++ {
		if p.history.Events[i].Kind == Write {
			n++
		}
	}
	return n
}

// Image fills image with what the disk holds. It asks fate about each write
// that was not flushed, in order, and keep about each sector of a torn one.
func (p *Player) Image(image []byte, fate func(pending int) Fate, keep func() bool) {
	copy(image, p.durable)
	n := 0
	for i := p.flushed; i < p.at; i++ {
		e := &p.history.Events[i]
		if e.Kind != Write {
			continue
		}
		switch fate(n) {
		case Kept:
			copy(image[e.At:], e.Data)
		case Torn:
			for s := 0; s < len(e.Data); s += SectorBytes {
				if keep() {
					copy(image[e.At+int64(s):], e.Data[s:min(s+SectorBytes, len(e.Data))])
				}
			}
		}
		n++
	}
}
