package crashimage

import (
	"os"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

func TestCrashImages(t *testing.T) {
	need(t)
	n := *images
	if n == 0 {
		switch os.Getenv("HOLDFAST_DEPTH") {
		case "ci":
			n = 600
		case "long":
			n = 50_000
		default:
			n = 40
		}
	}
	r, err := Run(t.Context(), Options{Binary: program, Seed: *seed, Images: n, Keep: *keep, Log: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d images of %d recordings, %.1f a second, %.1f pending writes in each: %+v", r.Images, r.Recordings, r.ImagesS, float64(r.Pending)/float64(r.Images), r.Work)
	if r.Failed > 0 {
		t.Errorf("%d of %d images break a promise", r.Failed, r.Images)
	}
	if r.Images < n || r.Pending < r.Images || r.Work.Acks < 100*r.Recordings || r.Work.Elections < r.Recordings || r.Work.Cuts == 0 {
		t.Errorf("too little was done to prove anything: %+v", r)
	}
}

// TestADiskThatLiesIsFoundOut shows that this lane can fail: on a disk that
// says it has flushed and has not, acknowledged bytes go.
func TestADiskThatLiesIsFoundOut(t *testing.T) {
	need(t)
	ledger := openLedger(t)
	o := Options{Binary: program, Bytes: 2 << 20, Log: func(string) {}}
	book, h, _, err := record(t.Context(), ledger, &o, 7)
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{}
	if err := examine(t.Context(), ledger, book, h, 16, 3, &o, r); err != nil {
		t.Fatal(err)
	}
	if r.Failed == 0 {
		t.Errorf("%d images of a disk that lies, and none breaks a promise", r.Images)
	}
	t.Logf("%d of %d images break a promise; the first: %v", r.Failed, r.Images, r.Failures)
}

// TestTheAuditSees changes one thing at a time and expects it to be noticed.
func TestTheAuditSees(t *testing.T) {
	book := newBook(3)
	who := wal.ProposerID{1}
	book.campaign(1, who)
	book.campaign(4, who)
	h := wal.History{{Term: 1, LSN: 0x1000}, {Term: 4, LSN: 0x2000}}
	book.elect(1, h[:1], 0x1000)
	book.elect(4, h, 0x2000)
	book.sending(4, 0x9000)
	good := recovered{flush: 0x8000, state: wal.State{Creation: book.Creation, Term: 4, VotedFor: who, History: h, Commit: 0x3000, Horizon: 0x1500}}
	promise := Promise{Created: true, Term: 4, Vote: who, Elected: 4, Flush: 0x7000, Commit: 0x3000, Oldest: 0x1400}
	if _, err := checkState(book, &promise, &good, 0x1400); err != nil {
		t.Fatalf("all is well, and yet: %v", err)
	}
	for what, change := range map[string]func(*recovered, *wal.LSN){
		"another creation":     func(r *recovered, _ *wal.LSN) { r.state.Creation[0]++ },
		"term back":            func(r *recovered, _ *wal.LSN) { r.state.Term = 3 },
		"vote changed":         func(r *recovered, _ *wal.LSN) { r.state.VotedFor[0]++ },
		"vote for nobody":      func(r *recovered, _ *wal.LSN) { r.state.Term = 5 },
		"commit back":          func(r *recovered, _ *wal.LSN) { r.state.Commit-- },
		"commit above flush":   func(r *recovered, _ *wal.LSN) { r.state.Commit = r.flush + 1 },
		"horizon above commit": func(r *recovered, _ *wal.LSN) { r.state.Horizon = r.state.Commit + 1 },
		"trimmed too far":      func(_ *recovered, oldest *wal.LSN) { *oldest++ },
		"election undone":      func(r *recovered, _ *wal.LSN) { r.state.History = h[:1] },
		"history changed": func(r *recovered, _ *wal.LSN) {
			r.state.History = wal.History{{Term: 1, LSN: 0x1000}, {Term: 4, LSN: 0x2001}}
		},
		"history cut too early": func(r *recovered, _ *wal.LSN) { r.state.History, r.state.Horizon = h[1:], 0x500 },
		"acknowledged and gone": func(r *recovered, _ *wal.LSN) { r.flush = 0x6fff },
		"never sent":            func(r *recovered, _ *wal.LSN) { r.flush = 0x9001 },
	} {
		r, oldest := good, wal.LSN(0x1400)
		r.state = r.state.Clone()
		change(&r, &oldest)
		if _, err := checkState(book, &promise, &r, oldest); err == nil {
			t.Errorf("%s: not noticed", what)
		}
	}
}

func TestBytesAreKnownByTheirPlace(t *testing.T) {
	whole := make([]byte, 9000)
	fill(whole, 1, 2, 0x1003)
	if at, bad := differs(whole[77:], 1, 2, 0x1003+77); bad {
		t.Errorf("a part of what was filled differs at %v", at)
	}
	for _, other := range []struct {
		seed uint64
		term wal.Term
		at   wal.LSN
	}{{2, 2, 0x1003}, {1, 3, 0x1003}, {1, 2, 0x1004}} {
		if _, bad := differs(whole, other.seed, other.term, other.at); !bad {
			t.Errorf("the same bytes in another place: %+v", other)
		}
	}
	whole[8999]++
	if at, bad := differs(whole, 1, 2, 0x1003); !bad || at != 0x1003+8999 {
		t.Errorf("a changed byte was found at %v, %v", at, bad)
	}
}
