package check

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// The WAL of an unmodified PostgreSQL: seven segments, a record of 20 MiB among them.
const (
	pgwalBegin = wal.LSN(0x1000000)
	pgwalEnd   = "0/704E0C8"
)

// pgwal unpacks the recorded WAL and returns its directory and the files' SHA-256.
func pgwal(t *testing.T) (dir string, sums map[string]string) {
	t.Helper()
	from := os.Getenv("HOLDFAST_CHECK_PGWAL")
	if from == "" {
		from = "../../shared/data/pgwal"
	}
	text, err := os.ReadFile(filepath.Join(from, "SHA256SUMS"))
	if err != nil {
		missing(t, "no recorded WAL; HOLDFAST_CHECK_PGWAL says where it is: %v", err)
	}
	dir = t.TempDir()
	if out, err := exec.Command("tar", "--zstd", "-xf", filepath.Join(from, "segments.tar.zst"), "-C", dir).CombinedOutput(); err != nil {
		missing(t, "the recorded WAL cannot be unpacked (tar and zstd are needed): %v\n%s", err, out)
	}
	sums = map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 {
			sums[f[1]] = f[0]
		}
	}
	for name, want := range sums {
		if got := sum(t, filepath.Join(dir, name)); got != want {
			t.Fatalf("%s is not what was recorded", name)
		}
	}
	return dir, sums
}

func sum(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// TestRealWALSurvivesKills: PostgreSQL's own WAL goes in while each acceptor in
// turn and the proposer twice are killed, and comes out of each of the three
// byte for byte.
func TestRealWALSurvivesKills(t *testing.T) {
	dir, sums := pgwal(t)
	f, c := start(t)
	ackLog := filepath.Join(t.TempDir(), "acks")
	// The rate makes sure that there is a stream left to be killed in.
	feed := []string{"load", "--create", "--from-segments", dir, "--until", pgwalEnd, "--ack-log", ackLog, "--rate", "20MB"}
	end, err := wal.ParseLSN(pgwalEnd)
	if err != nil {
		t.Fatal(err)
	}
	at := func(percent wal.LSN) {
		t.Helper()
		eventually(t, "the stream goes on", func() bool { return committed(t.Context(), c) >= pgwalBegin+(end-pgwalBegin)*percent/100 })
		if committed(t.Context(), c) >= end {
			t.Fatal("the stream was over before everything had been killed: this test showed nothing")
		}
	}
	proposer := spawn(t, f, feed...)
	for i, n := range f.Nodes {
		at(wal.LSN(10 + 30*i))
		n.Kill()
		at(wal.LSN(20 + 30*i)) // two of three carry on
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			at(wal.LSN(30 + 30*i))
			proposer.kill()
			proposer = spawn(t, f, feed...)
		}
	}
	if code := proposer.code(t); code != 0 {
		t.Fatalf("the last proposer ended with exit code %d: %s", code, &proposer.err)
	}
	// A stream that has nothing left to send brings every acceptor to the end.
	must(t, f, append(feed, "--settle", "60s")...)

	for _, n := range f.Nodes {
		out := t.TempDir()
		eventually(t, "the acceptor knows that all is committed", func() bool {
			x := spawn(t, f, "wal", "export", "--from", pgwalBegin.String(), "--to", pgwalEnd, "--out", out, "--acceptor", n.Addr)
			return x.code(t) == 0
		})
		for name, want := range sums {
			if got := sum(t, filepath.Join(out, name)); got != want {
				t.Errorf("node %d: %s is not the original", n.ID, name)
			}
		}
	}
	if r := audited(t, c, ackLog); r.Acked < 100 {
		t.Errorf("only %d appends were acknowledged", r.Acked)
	}
}
