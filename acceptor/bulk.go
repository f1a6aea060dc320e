package acceptor

import (
	"context"
	"slices"
	"time"

	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

const (
	// bulkBytesMax bounds what is written with one sync when a log is written
	// anew; with what each frame takes besides, it fits the smallest segment.
	bulkBytesMax   = wal.RequestBytesMax
	bulkFrameBytes = 128

	// bulkBytesPerSecond leaves the disk to those who write.
	bulkBytesPerSecond = 64 << 20
)

// bulk writes a log that nobody else writes, many frames with one sync, at a
// pace that leaves the disk to others. One goroutine uses it.
type bulk struct {
	log    *storage.Log
	commit wal.LSN // highest known
	at     wal.LSN // end of what was added
	wrote  func()  // called after every sync

	begun  time.Time
	bytes  int64 // written so far
	term   wal.Term
	chunks []wal.Chunk
	room   int // what the chunks take
}

// add takes a copy of a chunk that continues the log.
func (b *bulk) add(ctx context.Context, term wal.Term, c wal.Chunk) error {
	need := len(c.Data) + bulkFrameBytes
	if len(b.chunks) > 0 && (term != b.term || b.room+need > bulkBytesMax) {
		if err := b.write(ctx); err != nil {
			return err
		}
	}
	c.Data = slices.Clone(c.Data)
	b.term, b.chunks, b.room, b.at = term, append(b.chunks, c), b.room+need, c.End()
	return nil
}

// write makes what was added durable.
func (b *bulk) write(ctx context.Context) error {
	if len(b.chunks) == 0 {
		return ctx.Err()
	}
	if err := b.log.AppendAlone(b.term, min(b.commit, b.at), b.chunks); err != nil {
		return err
	}
	if b.begun.IsZero() {
		b.begun = time.Now()
	}
	b.bytes += int64(b.room)
	clear(b.chunks)
	b.chunks, b.room = b.chunks[:0], 0
	b.wrote()
	return sleepUntil(ctx, b.begun.Add(time.Duration(float64(b.bytes)/bulkBytesPerSecond*float64(time.Second))))
}
