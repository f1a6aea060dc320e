package storage

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// seedReader is a deterministic Config.Rand.
type seedReader struct{ *rand.ChaCha8 }

func newSeed(n byte) seedReader { return seedReader{rand.NewChaCha8([32]byte{n})} }

const testDir = "data/tenant/timeline"

// testConfig has segments small enough to see many of them.
func testConfig(fsys vfs.FS) Config {
	return Config{
		FS: fsys, Dir: testDir,
		SegmentBytes: 8 << 10, FirstSegmentBytes: 8 << 10,
		RequestBytesMax: 2 << 10, StateBytesMax: 512, StateReserveBytes: 3 << 10,
		Rand: newSeed(1),
	}
}

func testState() wal.State {
	return wal.State{
		Creation:   wal.CreationID{1, 2, 3},
		FirstLSN:   0x1000,
		Membership: wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1, Addr: "a:1"}, {ID: 2, Addr: "b:1"}, {ID: 3, Addr: "c:1"}}},
		Commit:     0x1000, Horizon: 0x1000,
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newLog creates and opens a log that is ready for writing.
func newLog(t testing.TB, cfg Config) *Log {
	t.Helper()
	must(t, cfg.FS.MkdirAll("data"))
	must(t, Create(cfg, testState()))
	return reopen(t, cfg)
}

func reopen(t testing.TB, cfg Config) *Log {
	t.Helper()
	l, err := Open(cfg)
	must(t, err)
	must(t, l.Prepare())
	t.Cleanup(func() { _ = l.Close(nil) })
	return l
}

// pattern is the WAL byte at every position, different for each term.
func pattern(term wal.Term, begin wal.LSN, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		x := uint64(begin) + uint64(i)
		b[i] = byte(x*7+x>>8) ^ byte(term*31)
	}
	return b
}

func chunk(term wal.Term, begin wal.LSN, n int) wal.Chunk {
	data := pattern(term, begin, n)
	return wal.Chunk{Begin: begin, CRC: wal.Checksum(data), Data: data}
}

// write does what the flush loop does for one batch: ask for space, seal and
// prepare when needed, append, sync.
func write(t testing.TB, l *Log, term wal.Term, sizes ...int) {
	t.Helper()
	must(t, tryWrite(l, term, sizes...))
}

func tryWrite(l *Log, term wal.Term, sizes ...int) error {
	total := 0
	var chunks []wal.Chunk
	at := l.WriteLSN()
	for _, n := range sizes {
		chunks = append(chunks, chunk(term, at, n))
		at += wal.LSN(n)
		total += n
	}
	if err := makeRoom(l, len(sizes), total); err != nil {
		return err
	}
	if err := l.Append(term, l.State().Commit, chunks, false); err != nil {
		return err
	}
	return l.Sync()
}

var errNoRoom = errors.New("no room")

func makeRoom(l *Log, frames, bytes int) error {
	for range 4 {
		if err := l.Err(); err != nil {
			return err
		}
		switch l.Space(frames, bytes) {
		case wal.SpaceOpen:
			return nil
		case wal.SpaceNext:
			if err := l.Seal(); err != nil {
				return err
			}
			if err := l.Sync(); err != nil {
				return err
			}
		default:
			if err := l.Prepare(); err != nil {
				return err
			}
		}
	}
	return errNoRoom
}

func save(t testing.TB, l *Log, st wal.State, end wal.LSN) {
	t.Helper()
	must(t, makeRoom(l, 0, 0))
	must(t, l.SaveState(&st, end))
	must(t, l.Sync())
}

// readAll reads [from, to) and the term of each byte.
func readAll(t testing.TB, l *Log, from, to wal.LSN) ([]byte, []wal.Term) {
	t.Helper()
	b, terms, err := tryReadAll(l, from, to)
	must(t, err)
	return b, terms
}

func tryReadAll(l *Log, from, to wal.LSN) ([]byte, []wal.Term, error) {
	r := l.NewReader(from)
	defer r.Close()
	var out []byte
	var terms []wal.Term
	for {
		f, err := r.Next(to)
		if err == io.EOF {
			return out, terms, nil
		}
		if err != nil {
			return out, terms, err
		}
		if f.Chunk.Begin != from+wal.LSN(len(out)) || !f.Chunk.Intact() {
			return out, terms, errors.New("a chunk is out of place or damaged")
		}
		out = append(out, f.Chunk.Data...)
		for range f.Chunk.Data {
			terms = append(terms, f.Term)
		}
	}
}

func TestAppendReopenRead(t *testing.T) {
	cfg := testConfig(vfs.NewMem())
	l := newLog(t, cfg)
	var want []byte
	for i := range 200 {
		sizes := []int{1 + i*13%700, 8, 1 + i%3}
		for _, n := range sizes {
			want = append(want, pattern(1, 0x1000+wal.LSN(len(want)), n)...)
		}
		write(t, l, 1, sizes...)
	}
	end := wal.LSN(0x1000 + len(want))
	check := func(l *Log) {
		t.Helper()
		if l.FlushLSN() != end || l.WriteLSN() != end {
			t.Fatalf("flush %v write %v, want %v", l.FlushLSN(), l.WriteLSN(), end)
		}
		got, _ := readAll(t, l, 0x1000, end)
		if !bytes.Equal(got, want) {
			t.Fatal("read other bytes than were written")
		}
		for from := wal.LSN(0x1000); from < end; from += 997 {
			to := min(from+1500, end)
			got, _ := readAll(t, l, from, to)
			if !bytes.Equal(got, want[from-0x1000:to-0x1000]) {
				t.Fatalf("wrong bytes in [%v,%v)", from, to)
			}
		}
	}
	check(l)
	must(t, l.Close(nil))
	l = reopen(t, cfg)
	check(l)
	write(t, l, 1, 100)
	if n := len(l.Segments()); n < 10 {
		t.Fatalf("%d segments; the test wants many", n)
	}
}
