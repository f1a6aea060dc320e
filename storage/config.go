package storage

import (
	"crypto/rand"
	"fmt"
	"io"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Defaults of Config.
const (
	SegmentBytesDefault      = 64 << 20
	FirstSegmentBytesDefault = 1 << 20
	stateReserveDefault      = 256 << 10
)

// Config says where a log is and how it uses the disk. A zero field has the
// default given at it.
type Config struct {
	FS  vfs.FS
	Dir string // the timeline's directory; it holds nothing but segments

	// Spares are taken when the disk is full and a segment is needed for
	// state. Nil means that there are none. Many logs may share one.
	Spares *Spares

	// Segments grow from FirstSegmentBytes (1 MiB) by doubling to SegmentBytes
	// (64 MiB). Multiples of 512.
	SegmentBytes      int64
	FirstSegmentBytes int64

	// RequestBytesMax is the largest chunk that Append takes (wal.RequestBytesMax).
	// A chunk of this size, a head and the reserve fit into the smallest segment.
	RequestBytesMax int

	// StateBytesMax bounds an encoded state (what the largest legal state
	// needs, about 97 KiB). StateReserveBytes is kept at each segment's end for state
	// frames, so that a node whose disk is full can still vote (256 KiB); it holds at least two of the largest.
	StateBytesMax     int
	StateReserveBytes int64

	// Rand gives the nonces (crypto/rand). It is read by whichever goroutine
	// prepares a segment, never by two at once for one Log.
	Rand io.Reader

	// Observer is told of segment operations. Nil means no one is.
	Observer Observer
}

// Observer counts what happens to segments. Its methods are called by the
// goroutine at work and must return at once.
type Observer interface {
	// SegmentEvent reports one operation on a segment of so many bytes.
	SegmentEvent(event SegmentEvent, bytes int64)
}

// SegmentEvent names an operation on a segment; the set is closed.
type SegmentEvent string

// The operations an Observer hears of.
const (
	SegmentPrepared SegmentEvent = "prepared" // made new and zero-filled
	SegmentRecycled SegmentEvent = "recycled" // made from a trimmed one
	SegmentSpare    SegmentEvent = "spare"    // taken from the spares: the disk is full
	SegmentSealed   SegmentEvent = "sealed"   // filled; its successor is next
	SegmentRemoved  SegmentEvent = "removed"  // trimmed and deleted
)

type noObserver struct{}

func (noObserver) SegmentEvent(SegmentEvent, int64) {}

// withDefaults fills in defaults and reports a configuration that cannot work.
func (c Config) withDefaults() (Config, error) {
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = SegmentBytesDefault
	}
	if c.FirstSegmentBytes == 0 {
		c.FirstSegmentBytes = min(FirstSegmentBytesDefault, c.SegmentBytes)
	}
	if c.RequestBytesMax == 0 {
		c.RequestBytesMax = wal.RequestBytesMax
	}
	if c.StateBytesMax == 0 {
		c.StateBytesMax = stateBytesMax
	}
	if c.StateReserveBytes == 0 {
		c.StateReserveBytes = max(stateReserveDefault, 2*c.stateFrameBytesMax())
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
	return c, c.validate()
}

func (c *Config) validate() error {
	if c.Dir == "" {
		return fmt.Errorf("storage needs the timeline's directory")
	}
	for _, n := range []int64{c.SegmentBytes, c.FirstSegmentBytes} {
		if n%sectorBytes != 0 {
			return fmt.Errorf("segment size %d is not a multiple of %d bytes", n, sectorBytes)
		}
	}
	if c.SegmentBytes < c.FirstSegmentBytes {
		return fmt.Errorf("segments cannot grow from %d to %d bytes", c.FirstSegmentBytes, c.SegmentBytes)
	}
	if c.StateReserveBytes < 2*c.stateFrameBytesMax() {
		return fmt.Errorf("a state reserve of %d bytes does not hold two states of %d bytes", c.StateReserveBytes, c.StateBytesMax)
	}
	if need := c.segmentBytesMin(); c.FirstSegmentBytes < need {
		return fmt.Errorf("a segment of %d bytes cannot take a request of %d bytes; it needs %d", c.FirstSegmentBytes, c.RequestBytesMax, need)
	}
	return nil
}

// stateFrameBytesMax is the room of the largest state frame as a batch of its own.
func (c *Config) stateFrameBytesMax() int64 { return alignSector(frameBytes(c.StateBytesMax)) }

// segmentBytesMin is the smallest segment that takes header, head, the largest request and the reserve.
func (c *Config) segmentBytesMin() int64 {
	return sectorBytes + alignSector(frameBytes(c.StateBytesMax)+frameBytes(c.RequestBytesMax)) + c.StateReserveBytes
}

// payloadBytesMax bounds what a frame found on disk may claim to hold.
// It does not follow the configuration, which may have been larger when the frame was written.
const payloadBytesMax = 16 << 20
