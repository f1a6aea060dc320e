package pgwal

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// realWAL makes a cluster's first segments of 1 MiB, and what pg_waldump says of their records.
func realWAL(t *testing.T) (dir string, in pgcluster.Installation, begin wal.LSN, log []byte, records []wal.LSN) {
	t.Helper()
	in = pgcluster.Need(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir, err := in.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c, err := in.Init(ctx, filepath.Join(dir, "main"), pgcluster.InitOptions{SegmentMiB: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Configure("fsync = off", "wal_keep_size = 1GB"); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	start, err := c.Value(ctx, "SELECT pg_switch_wal() + 0; SELECT pg_walfile_name(pg_current_wal_lsn() + 1048576)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Query(ctx, `CREATE TABLE t(i int, p text);
		INSERT INTO t SELECT i, repeat('x', i % 3000) FROM generate_series(1, 500) i;
		SELECT pg_logical_emit_message(true, 'a', repeat('y', 3000000)); SELECT pg_switch_wal();
		INSERT INTO t SELECT i, repeat('x', i % 3000) FROM generate_series(1, 500) i`); err != nil {
		t.Fatal(err)
	}
	end, err := c.Value(ctx, "SELECT pg_walfile_name(pg_current_wal_lsn())")
	if err != nil {
		t.Fatal(err)
	}
	const segment = SegmentBytes(1 << 20)
	_, begin, _ = segment.ParseFileName(start)
	_, last, _ := segment.ParseFileName(end)
	for at := begin; at < last; at += wal.LSN(segment) {
		b, err := os.ReadFile(filepath.Join(c.Dir, "pg_wal", segment.FileName(1, at)))
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, b...)
	}
	out, err := exec.Command(filepath.Join(in.Bin, "pg_waldump"), "-p", filepath.Join(c.Dir, "pg_wal"), "-s", begin.String(), "-e", last.String()).Output()
	for _, m := range regexp.MustCompile(`lsn: ([0-9A-F]+/[0-9A-F]+)`).FindAllStringSubmatch(string(out), -1) {
		l, _ := wal.ParseLSN(m[1])
		records = append(records, l)
	}
	if len(records) < 400 {
		t.Fatalf("pg_waldump: %v: %d records\n%.500s", err, len(records), out)
	}
	return dir, in, begin, log, records
}

// TestTailAgreesWithWaldump cuts real WAL at many positions.
func TestTailAgreesWithWaldump(t *testing.T) {
	dir, in, begin, log, records := realWAL(t)
	r := rand.New(rand.NewPCG(1, 2))
	next := 0
	tail := NewTail(1<<20, begin)
	for at := 0; at < len(log); {
		n := min(1+r.IntN(20000), len(log)-at)
		if err := tail.Feed(log[at : at+n]); err != nil {
			t.Fatal(err)
		}
		at += n
		end := begin + wal.LSN(at)
		for next < len(records) && records[next] < end {
			next++
		}
		open, is := tail.Open()
		if is && (next == 0 || open != records[next-1]) || !is && tail.Complete() && tail.last != records[next-1] {
			t.Fatalf("cut at %v: open %v %v, last %v; pg_waldump's last record below is %v", end, open, is, tail.last, records[max(next-1, 0)])
		}
	}

	// Every cut at a page's end inside a record can be closed, and pg_waldump
	// reads the closing record.
	closed := 0
	for cut := PageBytes; cut < len(log) && closed < 12; cut += PageBytes * (1 + r.IntN(20)) {
		tail := NewTail(1<<20, begin)
		if err := tail.Feed(log[:cut]); err != nil {
			t.Fatal(err)
		}
		open, is := tail.Open()
		if !is || !tail.Complete() {
			continue
		}
		closing, err := tail.Closing(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		closed++
		sub := filepath.Join(dir, "closed")
		os.RemoveAll(sub)
		if err := in.MakeDir(sub); err != nil {
			t.Fatal(err)
		}
		whole := append(append([]byte{}, log[:cut]...), closing...)
		if err := NewTail(1<<20, begin).Feed(whole); err != nil {
			t.Fatal(err)
		}
		whole = append(whole, make([]byte, 2<<20-len(whole)%(1<<20))...)
		for at := 0; at < len(whole)-1<<20; at += 1 << 20 {
			name := SegmentBytes(1<<20).FileName(1, begin+wal.LSN(at))
			if err := os.WriteFile(filepath.Join(sub, name), whole[at:at+1<<20], 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out, _ := exec.Command(filepath.Join(in.Bin, "pg_waldump"), "-p", sub, "-s", begin.String()).CombinedOutput()
		if !strings.Contains(string(out), "OVERWRITE_CONTRECORD lsn "+open.String()) {
			t.Fatalf("cut at %v inside %v: pg_waldump does not see the closing record:\n%s", begin+wal.LSN(cut), open, out[max(0, len(out)-700):])
		}
	}
	if closed < 5 {
		t.Errorf("only %d cuts lay inside a record", closed)
	}
}

func FuzzTail(f *testing.F) {
	page := make([]byte, PageBytes)
	copy(page, []byte{0x10, 0xD1, 2, 0, 1, 0, 0, 0})
	page[longPageHeaderBytes] = 200
	f.Add(page, 100)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole, parts := NewTail(1<<20, 0), NewTail(1<<20, 0)
		err := whole.Feed(b)
		cut = min(max(cut, 0), len(b))
		errParts := parts.Feed(b[:cut])
		if errParts == nil {
			errParts = parts.Feed(b[cut:])
		}
		if (err == nil) != (errParts == nil) {
			t.Fatalf("at once %v, in parts %v", err, errParts)
		}
		if err != nil {
			return
		}
		if a, is := whole.Open(); is {
			if b, _ := parts.Open(); a != b {
				t.Fatal(a, b)
			}
		}
		if c, err := whole.Closing(time.Time{}); err == nil && c != nil && whole.Feed(c) != nil {
			t.Fatal("the closing bytes are not understood")
		}
	})
}
