package proposer

import (
	"context"
	"fmt"
	"time"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// atOnceBytesMax is the most data that is copied in one go while the lock is held.
const atOnceBytesMax = 256 << 10

// AppendBytesMax is the most that one Append may carry: 1 GiB. Up to there it is
// cut into as many requests as it needs.
const AppendBytesMax = 1 << 30

// endsMax bounds the appends that wait to be cut when nothing is coalesced.
const endsMax = 1 << 16

// Append places data at the end of the log and returns where it lies, [begin,
// end). The bytes are on their way but not safe: Wait for end. Data is copied
// once and may be reused when Append returns. It may have any size up to
// AppendBytesMax, above it ErrTooLarge is returned; bytes of one Append are
// contiguous, and no one else's come between.
//
// While the window is full Append waits, in turn, until ctx ends. Data smaller
// than the window is placed as a whole or, with an error, not at all. Of larger
// data the part [begin, end) may have been placed when an error comes back; it
// belongs to the log.
//
// A log ends at wal.LSNMax at the latest: what would go beyond gets ErrLogEnds.
// After the proposer has stopped Append returns its error.
func (p *Proposer) Append(ctx context.Context, data []byte) (begin, end wal.LSN, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	if len(data) > AppendBytesMax {
		return 0, 0, fmt.Errorf("%w: %d bytes, at most %d go into one; append it in parts", ErrTooLarge, len(data), AppendBytesMax)
	}
	p.mu.Lock()
	if p.err == nil && p.turns == 0 && p.window.tail <= wal.LSNMax-wal.LSN(len(data)) && len(data) <= atOnceBytesMax && p.reserve(len(data)) {
		begin = p.window.tail
		p.place(data)
		p.ended()
		end = p.window.tail
		p.mu.Unlock()
		return begin, end, nil
	}
	p.turns++
	p.mu.Unlock()
	return p.appendInTurn(ctx, data)
}

// appendInTurn is Append when the window is full or the data large: one
// appender at a time, the others behind it.
func (p *Proposer) appendInTurn(ctx context.Context, data []byte) (begin, end wal.LSN, err error) {
	defer func() {
		p.mu.Lock()
		p.turns--
		p.mu.Unlock()
	}()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	case <-p.done:
		return 0, 0, p.Err()
	}
	p.mu.Lock()
	begin, end = p.window.tail, p.window.tail
	if p.err == nil && begin > wal.LSNMax-wal.LSN(len(data)) {
		p.mu.Unlock()
		return begin, end, fmt.Errorf("%w: %d bytes at %v would pass %v", ErrLogEnds, len(data), begin, wal.LSNMax)
	}
	need := min(len(data), p.window.capacity())
	for {
		// With room for all that is left, or for as much as there can be, nothing
		// but a stop comes between: only the holder of the turn takes room.
		for p.err == nil && !p.reserve(need) {
			p.starved = true
			p.mu.Unlock()
			since := time.Now()
			select {
			case <-p.room:
				err = nil
			case <-ctx.Done():
				err = ctx.Err()
			case <-p.done:
			}
			p.mu.Lock()
			p.starved = false
			p.meter.waited(time.Since(since))
			if err != nil {
				p.mu.Unlock()
				return begin, end, err
			}
		}
		if p.err != nil {
			err = p.err
			p.mu.Unlock()
			return begin, end, err
		}
		n := min(len(data), need, atOnceBytesMax)
		p.place(data[:n])
		data = data[n:]
		end = p.window.tail
		if len(data) == 0 {
			p.ended()
			p.mu.Unlock()
			return begin, end, nil
		}
		if need -= n; need == 0 {
			need = min(len(data), atOnceBytesMax, p.window.capacity())
		}
		p.mu.Unlock() // let the senders have their turn
		p.mu.Lock()
	}
}

// reserve reports whether the window has room for n bytes, after giving up what
// is committed if it must.
func (p *Proposer) reserve(n int) bool {
	if p.config.NoCoalesce && p.ends.len() >= endsMax {
		return false
	}
	if p.window.room() >= n {
		return true
	}
	before := p.window.begin
	ok := p.window.reclaim(n, p.state.Commit)
	if p.window.begin != before {
		p.released()
	}
	return ok
}

// place copies data, for which there is room, into the window and wakes the
// senders that can go on with it.
func (p *Proposer) place(data []byte) {
	if len(data) == 0 {
		return
	}
	p.meter.placing(p.cuts.end == p.window.tail)
	p.window.place(data)
	p.core.Handed(p.window.tail)
	p.tail.Store(uint64(p.window.tail))
	for _, m := range p.members {
		if c := m.conn; c != nil && c.idle && c.sendable() {
			c.wake()
		}
	}
}

// ended notes the end of an append.
func (p *Proposer) ended() {
	p.meter.appends++
	if p.config.NoCoalesce {
		p.ends.add(p.window.tail)
	}
}
