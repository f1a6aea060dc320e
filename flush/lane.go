package flush

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/seed7f3f3bb8/holdfast/consensus"
)

// ErrClosed is what a lane answers after it was interrupted or its loop has ended.
var ErrClosed = errors.New("the stream has ended")

// Lane is one stream's way into the inbox. Its receiver, one goroutine, calls
// Take, Append, Put and Close; Interrupt may be called by anyone.
//
// WAL is copied once: Take gives the memory to copy it to, which holds the
// receiver back while the inbox or the node's pool is full, and so, by flow
// control, the proposer.
type Lane struct {
	inbox  *inbox
	id     consensus.StreamID
	stream Stream

	// fill is the block that is being filled, nil while the receiver has it in
	// hand or when it was taken away. Whoever swaps it out owns its fill reference.
	fill atomic.Pointer[block]

	// Of the receiver only.
	hand     *block // taken out of fill by Take
	reserved []byte // not yet appended
	class    int    // size of the next block
	filled   int    // how much of the last block was used

	interrupt   sync.Once
	done        chan struct{} // closed by Interrupt
	interrupted bool          // likewise; guarded by inbox.mu

	// Of the loop only.
	known bool // a message of it has come
	ended bool // what it still has queued is discarded
}

// ID is the stream's name towards the state machine.
func (l *Lane) ID() consensus.StreamID { return l.id }

// Take returns n bytes to copy an append's data to. It waits while they do
// not fit; ErrClosed means that the lane was interrupted meanwhile. What was
// taken before and not appended is given up.
func (l *Lane) Take(n int) ([]byte, error) {
	l.abandon()
	if !l.inbox.admit(l, int64(n+itemBytes)) {
		return nil, ErrClosed
	}
	b := l.fill.Swap(nil)
	if b != nil && b.room() < n {
		b.drop(1)
		b = nil
		l.class = min(l.class+1, classes-1)
	} else if b == nil && l.filled < classBytes(l.class)/4 {
		l.class = max(l.class-1, 0)
	}
	if b == nil {
		if b = l.inbox.pool.get(max(l.class, classOf(n)), l.done); b == nil {
			l.inbox.release(int64(n + itemBytes))
			return nil, ErrClosed
		}
	}
	l.hand = b
	l.reserved = b.buf[b.used : b.used+n : b.used+n]
	return l.reserved, nil
}

// abandon gives up a reservation that was not appended.
func (l *Lane) abandon() {
	if l.hand != nil {
		l.inbox.release(int64(len(l.reserved) + itemBytes))
		l.putBack(l.hand)
	}
}

// putBack leaves b to be filled further.
func (l *Lane) putBack(b *block) {
	l.filled = b.used
	l.hand, l.reserved = nil, nil
	l.fill.Store(b)
}

// Append queues r. Its data is empty or exactly what Take returned last.
// The loop owns the data from here on; r itself is copied.
func (l *Lane) Append(r *consensus.AppendRequest) error {
	if len(r.Data) == 0 {
		l.abandon()
		if !l.inbox.admit(l, itemBytes) {
			return ErrClosed
		}
		if !l.inbox.put(itemAppend, func(it *item) {
			it.lane, it.charge, it.append = l, itemBytes, *r
			it.append.Data = nil
		}) {
			return ErrClosed
		}
		return nil
	}
	b := l.hand
	if b == nil || len(l.reserved) != len(r.Data) || &l.reserved[0] != &r.Data[0] {
		return errors.New("append: the data is not what was taken for it")
	}
	b.used += len(r.Data)
	b.refs.Add(1)
	l.putBack(b) // first, so that the loop finds the block when it has emptied it
	charge := len(r.Data) + itemBytes
	if !l.inbox.put(itemAppend, func(it *item) {
		it.lane, it.block, it.charge, it.append = l, b, charge, *r
	}) {
		b.drop(1)
		l.inbox.release(int64(charge))
		return ErrClosed
	}
	return nil
}

// Put queues any message; the data of an append is copied.
func (l *Lane) Put(m consensus.Message) error {
	if r, ok := m.(*consensus.AppendRequest); ok {
		c := *r
		if len(c.Data) > 0 {
			to, err := l.Take(len(c.Data))
			if err != nil {
				return err
			}
			copy(to, c.Data)
			c.Data = to
		}
		return l.Append(&c)
	}
	l.abandon()
	charge := weigh(m)
	if !l.inbox.admit(l, int64(charge)) {
		return ErrClosed
	}
	if !l.inbox.put(itemMessage, func(it *item) { it.lane, it.charge, it.message = l, charge, m }) {
		return ErrClosed
	}
	return nil
}

// weigh is about how much memory a rare message takes.
func weigh(m consensus.Message) int {
	n := itemBytes + 256
	if e, ok := m.(*consensus.Elected); ok {
		n += 16*len(e.History) + len(e.Properties)
	}
	return n
}

// Interrupt makes a waiting Take, Append or Put return ErrClosed, now and
// from now on. It does not wait.
func (l *Lane) Interrupt() {
	l.interrupt.Do(func() {
		close(l.done)
		in := l.inbox
		in.mu.Lock()
		l.interrupted = true
		in.room.Broadcast()
		in.mu.Unlock()
	})
}

// Close is the receiver's last call. What it has queued is still performed,
// and then the state machine forgets the stream.
func (l *Lane) Close() {
	l.Interrupt()
	l.abandon()
	if b := l.fill.Swap(nil); b != nil {
		b.drop(1)
	}
	l.inbox.forget(l)
	l.inbox.put(itemClose, func(it *item) { it.lane = l })
}
