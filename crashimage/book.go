package crashimage

import (
	"sync"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Book is what the proposers of one run asked for. What it says may have
// happened; what was promised stands as notes in the disk's history.
type Book struct {
	Seed     uint64
	Timeline wal.TimelineID
	Creation wal.CreationID
	First    wal.LSN

	mu        sync.Mutex
	campaigns map[wal.Term]wal.ProposerID
	elections map[wal.Term]*election
}

// election is a term that was won, and what was sent in it.
type election struct {
	history wal.History
	resume  wal.LSN
	sent    wal.LSN // end of what was appended in this term, at least resume
}

func newBook(seed uint64) *Book {
	return &Book{
		Seed: seed, Timeline: wal.TimelineID{Tenant: "crash", Timeline: "main"}, Creation: wal.CreationID{1, byte(seed)}, First: 0x1000,
		campaigns: map[wal.Term]wal.ProposerID{}, elections: map[wal.Term]*election{},
	}
}

// campaign reports whether nobody asked for term before.
func (b *Book) campaign(term wal.Term, who wal.ProposerID) (fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, asked := b.campaigns[term]
	b.campaigns[term] = who
	return !asked
}

func (b *Book) elect(term wal.Term, h wal.History, resume wal.LSN) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.elections[term] = &election{history: h, resume: resume, sent: resume}
}

func (b *Book) sending(term wal.Term, end wal.LSN) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.elections[term].sent = max(b.elections[term].sent, end)
}

// Promises: notes in the history, each put there when the answer was received.
type (
	// created: the timeline is there.
	created struct{}
	// voted: this vote was granted. commit was saved with it; it is 0 if the
	// vote had been granted before, for then nothing need be saved.
	voted struct {
		term   wal.Term
		who    wal.ProposerID
		commit wal.LSN
	}
	// acked: everything below flush is durable in this term, and so is that commit.
	acked struct {
		term   wal.Term
		flush  wal.LSN
		commit wal.LSN
	}
	// trimmed: below this position there may be nothing any more.
	trimming struct{ before wal.LSN }
)

// Promise is all that had been promised at one moment.
type Promise struct {
	Created bool
	Term    wal.Term       // never below it
	Vote    wal.ProposerID // if Term is still the term
	Elected wal.Term       // the newest term in which anything was acknowledged
	Flush   wal.LSN        // what was acknowledged in it
	Commit  wal.LSN        // what was saved
	Oldest  wal.LSN        // trimmed no further than this
	Acks    int            // acknowledgements so far
}

// add takes one more note into account.
func (p *Promise) add(note any) {
	switch n := note.(type) {
	case created:
		p.Created = true
	case voted:
		if n.term >= p.Term {
			p.Term, p.Vote = n.term, n.who
		}
		p.Commit = max(p.Commit, n.commit)
	case acked:
		p.Acks++
		if n.term > p.Elected {
			p.Elected, p.Flush = n.term, 0
		}
		if n.term == p.Elected {
			p.Flush = max(p.Flush, n.flush)
		}
		p.Commit = max(p.Commit, n.commit)
	case trimming:
		p.Oldest = max(p.Oldest, n.before)
	}
}
