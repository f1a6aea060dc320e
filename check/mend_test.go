package check

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// copyOf is what node i says of its copy, nil if it does not answer.
func copyOf(t *testing.T, c *admin.Client, i int) *admin.Timeline {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return c.Timelines(ctx, timeline)[i].Value
}

// segments lists a node's segment files, oldest first.
func segments(t *testing.T, n *fleet.Node) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(n.Dir, "check", "main", "*.seg"))
	if err != nil || len(names) < 4 {
		t.Fatalf("the test wants more segments than %v, %v", names, err)
	}
	return names
}

// rot flips a bit of a frame in each of some of a node's older segments. Those that hold the
// newest state are left alone: without it the copy is lost, which is another test.
func rot(t *testing.T, n *fleet.Node, names []string) {
	t.Helper()
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := []byte{0}
		at := 4096 + rand.Int64N(1<<20)
		if _, err := f.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 1 << rand.IntN(8)
		if _, err := f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBitFlipsOnAMinority is the story of NATS JetStream, where flipped bits on
// a minority of the nodes lost what a majority had acknowledged. Here they are found
// by the scrub, served to nobody, and mended from peers while the
// others carry on; also where a whole segment is gone.
func TestBitFlipsOnAMinority(t *testing.T) {
	f, c := start(t, "--first-segment-bytes", "2MiB", "--segment-bytes", "2MiB")
	create(t, c, 0)
	ackLog := filepath.Join(t.TempDir(), "acks")
	p := open(t, f.Addresses())
	appendAll(t, p, 16<<20, ackLog)
	settle(t, p)
	victim := f.Nodes[2]

	// While it runs.
	names := segments(t, victim)
	rot(t, victim, names[1:len(names)-3])
	scrub := spawn(t, f, "scrub", "--json", "--bytes-per-second", "1GiB")
	if code := scrub.code(t); code != 6 {
		t.Fatalf("scrub: exit code %d\n%s%s", code, &scrub.out, &scrub.err)
	}
	var report struct {
		Damaged int
		Copies  []struct {
			Where  string
			Damage []struct {
				Begin wal.LSN `json:"begin_lsn"`
				End   wal.LSN `json:"end_lsn"`
			}
		}
	}
	if err := json.Unmarshal(scrub.out.Bytes(), &report); err != nil || report.Damaged == 0 {
		t.Fatalf("%v: %s", err, &scrub.out)
	}
	for _, x := range report.Copies {
		if (x.Where == victim.Addr) != (len(x.Damage) > 0) {
			t.Errorf("%s: %d damaged places", x.Where, len(x.Damage))
		}
	}
	appendAll(t, p, 1<<20, ackLog)
	eventually(t, "the damage is mended", func() bool { s := copyOf(t, c, 2); return s != nil && s.Health == wal.Healthy })
	settle(t, p)
	audited(t, c, ackLog)
	if m, err := filepath.Glob(filepath.Join(victim.Dir, "check", "main.quarantined", "REASON")); err != nil || len(m) != 1 {
		t.Errorf("the damaged files are not kept: %v, %v", m, err)
	}

	// While it is down: a segment is gone for good. Opening sees that.
	victim.Kill()
	names = segments(t, victim)
	if err := os.Remove(names[2]); err != nil {
		t.Fatal(err)
	}
	appendAll(t, p, 1<<20, ackLog)
	if err := victim.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lost segment is mended", func() bool {
		s := copyOf(t, c, 2)
		return s != nil && s.Health == wal.Healthy && s.Opened
	})
	settle(t, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	audited(t, c, ackLog)
	must(t, f, "timeline", "repair") // nothing is left to do
}

// TestWipedMemberIsFilledForReading: a member loses its disk and comes back
// under its id. It says that it has lost its copy, never helps a quorum, and one
// command, which a kill -9 may interrupt, makes it serve readers again.
func TestWipedMemberIsFilledForReading(t *testing.T) {
	f, c := start(t, "--first-segment-bytes", "2MiB", "--segment-bytes", "4MiB")
	create(t, c, 0)
	ackLog := filepath.Join(t.TempDir(), "acks")
	p := open(t, f.Addresses())
	appendAll(t, p, 48<<20, ackLog)
	victim := f.Nodes[2]
	victim.Kill()
	if err := os.RemoveAll(victim.Dir); err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	appendAll(t, p, 1<<20, ackLog)
	eventually(t, "its peers tell", func() bool { s := copyOf(t, c, 2); return s != nil && s.Health == wal.Lost })
	status := spawn(t, f, "status")
	if code := status.code(t); code != 3 || !strings.Contains(status.out.String(), "lost") {
		t.Errorf("status: exit code %d\n%s", code, &status.out)
	}
	if create := spawn(t, f, "timeline", "create"); create.code(t) == 0 {
		t.Error("a lost copy comes back by creation")
	}

	kills := 0
	eventually(t, "the copy is filled", func() bool {
		fill := spawn(t, f, "timeline", "fill", "--acceptor", victim.Addr)
		if kills < 3 {
			kills++
			time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond))))
			victim.Kill()
			if err := victim.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return fill.code(t) == 0
	})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	must(t, f, "timeline", "fill", "--acceptor", victim.Addr)
	s := copyOf(t, c, 2)
	if s == nil || !s.Filled || s.Health != wal.Lost {
		t.Fatalf("after the fill: %+v", s)
	}
	var sums [][]byte
	for _, n := range f.Nodes[1:] {
		h := sha256.New()
		end, err := c.Read(t.Context(), n.Addr, admin.ReadOptions{Timeline: timeline, Creation: s.Creation, End: s.Commit}, func(c wal.Chunk) error {
			h.Write(c.Data)
			return nil
		})
		if err != nil || end != s.Commit || end < 48<<20 {
			t.Fatalf("%s: read up to %v of %v, %v", n.Addr, end, s.Commit, err)
		}
		sums = append(sums, h.Sum(nil))
	}
	if !bytes.Equal(sums[0], sums[1]) {
		t.Error("the filled copy differs")
	}

	// With one real member and the filled one there is no quorum, also after a restart.
	f.Nodes[0].Kill()
	victim.Kill()
	if err := victim.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := copyOf(t, c, 2); s == nil || !s.Filled || s.Health != wal.Lost {
		t.Fatalf("after a restart: %+v", s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if p, err := proposer.Open(ctx, proposer.Config{Acceptors: f.Addresses(), Timeline: timeline}); err == nil {
		p.Close()
		t.Fatal("elected with the vote of a filled copy")
	}
	if err := f.Nodes[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = open(t, f.Addresses())
	appendAll(t, p, 1<<20, ackLog)
}
