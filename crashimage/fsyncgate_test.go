package crashimage

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/blockdev"
	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestFsyncgate: PostgreSQL's fsyncgate with a real acceptor on a real ext4.
// A flush fails with EIO and the disk keeps the old bytes, while the page cache
// shows the new ones and a second fsync would say that all is well. Nothing may be
// acknowledged then, nothing unproved be read, and what had been acknowledged
// must be there afterwards, by whichever way the acceptor comes back.
func TestFsyncgate(t *testing.T) {
	need(t)
	for _, way := range []struct {
		name  string
		times int // how many flushes fail; 0: all of them, for a while
		back  func(*testing.T, *stage, *client)
	}{
		{"it opens the log again by itself", 0, func(t *testing.T, s *stage, c *client) {}},
		{"only one flush fails, the next would succeed", 1, func(t *testing.T, s *stage, c *client) {}},
		{"kill -9 and start again, with the page cache as it is", 0, func(t *testing.T, s *stage, c *client) {
			s.node.Kill()
			if err := s.node.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			for range 10 {
				if fsyncgate(t, way.times, way.back) {
					return
				}
			}
			t.Error("ext4 gave up its journal each time, so the acceptor was never what was tested")
		})
	}
}

// fsyncgate reports false if the fault hit ext4's own journal, too: then the
// file system takes no writes until it is mounted again, whoever asks. It happens
// if the machine is so slow that the acceptor tries its disk again before the fault is over.
func fsyncgate(t *testing.T, times int, back func(*testing.T, *stage, *client)) bool {
	s, err := newStage(t.Context(), openLedger(t), program, "--spare-segments", "0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Log(tailOf(s.node.Log))
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	book := newBook(1)
	var promise Promise
	c, err := dial(s.node.Addr, book, func(note any) { promise.add(note) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	if err := c.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := lead(t, c)
	at := book.First
	for range 60 { // enough to have the next segment made
		at = p.append(at, 5000, book.First, 0)
	}
	if err := p.acked(at, 0); err != nil {
		t.Fatal(err)
	}
	good := at

	s.settle(t)
	if err := syncFS(s.ext4.Dir); err != nil { // so that the journal has nothing of its own to write
		t.Fatal(err)
	}
	s.disk.SetFault(blockdev.Fault{FlushError: syscall.EIO, FlushTimes: times, FlushLoses: true})
	for range 3 {
		at = p.append(at, 5000, good, 0)
	}
	err = p.acked(at, 0)
	var e *consensus.Error
	if !errors.As(err, &e) || e.Reason != consensus.ReasonPoisoned {
		t.Fatalf("an append whose fdatasync fails: %v, expected %v", err, consensus.ReasonPoisoned)
	}
	if got := p.flushed(); got != good {
		t.Fatalf("%v was acknowledged on a disk that fails; it had %v", got, good)
	}
	if times == 0 { // otherwise it may be well again by now
		refuses(t, c, good)
	}

	s.disk.SetFault(blockdev.Fault{})
	if err := probe(s.ext4.Dir); err != nil {
		t.Logf("again: %v", err)
		return false
	}
	back(t, s, c)
	p = leadEventually(t, c)
	if v := p.start; v != good {
		t.Fatalf("the log goes on at %v; the disk holds what was acknowledged, %v, and nothing else", v, good)
	}
	at = p.start
	for range 20 {
		at = p.append(at, 5000, good, 0)
	}
	if err := p.acked(at, 0); err != nil {
		t.Fatal(err)
	}
	p.close()

	// What is on the platters now, past every cache.
	h := s.disk.Stop()
	player := blockdev.NewPlayer(h)
	player.Seek(len(h.Events))
	dir := t.TempDir()
	x := &bench{ctx: t.Context(), ledger: s.ledger, book: book, file: filepath.Join(dir, "image"), mnt: filepath.Join(dir, "mnt")}
	if err := x.open(len(h.Base)); err != nil {
		t.Fatal(err)
	}
	defer x.close()
	player.Image(x.image, func(int) blockdev.Fate { return blockdev.Dropped }, nil)
	if broken, err := x.judge(promise, true); broken != nil || err != nil {
		t.Errorf("power cut afterwards: %v %v", broken, err)
	}
	return true
}

func syncFS(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// probe tells whether a file system takes writes.
func probe(dir string) error {
	name := filepath.Join(dir, "Probe")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), os.Remove(name))
}

// settle waits until the next segment is made and nothing of the file system is
// waiting for the disk. The fault is to meet the batch and nothing else: one
// that meets a commit of ext4's journal makes all of it read-only for good.
func (s *stage) settle(t *testing.T) {
	t.Helper()
	root := filepath.Join(s.dir, "node-1")
	dir := filepath.Join(root, "crash", "main")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		made, err := filepath.Glob(filepath.Join(dir, "*.seg"))
		if err != nil {
			t.Fatal(err)
		}
		half, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
		if err != nil {
			t.Fatal(err)
		}
		if len(made) >= 3 && len(half) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no segment was made ahead; there are %d, and %d half made", len(made), len(half))
		}
	}
	f, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		t.Fatal(err)
	}
}

// refuses expects a copy that says it is poisoned, ends at good, and gives no vote.
func refuses(t *testing.T, c *client, good wal.LSN) {
	t.Helper()
	st, err := c.status(t.Context())
	if err != nil || st.GetHealth() != holdfastv1.Health_HEALTH_POISONED || wal.LSN(st.GetFlushLsn()) != good {
		t.Fatalf("status says %v, flush %v (%v); expected poisoned, %v", st.GetHealth(), wal.LSN(st.GetFlushLsn()), err, good)
	}
	if _, _, err := c.votes(t, wal.ProposerID{9}); err == nil {
		t.Fatal("a poisoned copy gave its vote")
	}
}

// leader is a stream that won, and where its log begins.
type leader struct {
	*stream
	start wal.LSN
}

func (l *leader) flushed() wal.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flush
}

// votes opens a stream and asks for the next term.
func (c *client) votes(t *testing.T, who wal.ProposerID) (*stream, *consensus.VoteResponse, error) {
	t.Helper()
	s, g, err := c.open(t.Context(), who)
	if err != nil {
		return nil, nil, err
	}
	v, err := s.vote(g.Term + 1)
	if err == nil && !v.Granted {
		err = errors.New("refused")
	}
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, v, nil
}

func lead(t *testing.T, c *client) *leader {
	t.Helper()
	l, err := c.lead(t)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (c *client) lead(t *testing.T) (*leader, error) {
	t.Helper()
	var who wal.ProposerID
	binary.LittleEndian.PutUint64(who[:], c.connections+1)
	s, v, err := c.votes(t, who)
	if err != nil {
		return nil, err
	}
	return &leader{s, v.Flush}, s.elect(v, v.Term, v.Flush)
}

// leadEventually leads once the copy is healthy again.
func leadEventually(t *testing.T, c *client) *leader {
	t.Helper()
	for deadline := time.Now().Add(answerWait); ; time.Sleep(20 * time.Millisecond) {
		l, err := c.lead(t)
		if err == nil {
			return l
		}
		if time.Now().After(deadline) {
			t.Fatalf("the copy does not come back: %v", err)
		}
	}
}
