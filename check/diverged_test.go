package check

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// TestDivergedTailConverges: an acceptor alone has bytes that nobody else has;
// the others elect, write other bytes, and commit them. When it comes back its
// tail must give way, whenever it is killed while that happens.
func TestDivergedTailConverges(t *testing.T) {
	rounds := 4
	if long() {
		rounds = 40
	}
	f, c := start(t, "--first-segment-bytes", "2MiB", "--segment-bytes", "2MiB")
	create(t, c, 0)
	ackLog := filepath.Join(t.TempDir(), "acks")
	for round := range rounds {
		alone, others := f.Nodes[round%3], []int{(round + 1) % 3, (round + 2) % 3}

		// An orphan tail on one acceptor.
		p := open(t, f.Addresses())
		appendAll(t, p, 1<<20, ackLog)
		for _, i := range others {
			f.Nodes[i].Kill()
		}
		orphan := make([]byte, 3<<20)
		workload.NewPayloads(uint64(round)+1000).Fill(1, orphan)
		begin, end, err := p.Append(t.Context(), orphan)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the lone acceptor holds the orphan tail", func() bool {
			for _, m := range p.Peers() {
				if m.Addr == alone.Addr && m.Flush >= end {
					return true
				}
			}
			return false
		})
		if p.Commit() >= end || p.Commit() > begin {
			t.Fatalf("bytes that one of three holds are committed: %v of [%v, %v)", p.Commit(), begin, end)
		}
		alone.Kill()
		p.Close()

		// The others write something else.
		for _, i := range others {
			if err := f.Nodes[i].Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p = open(t, f.Addresses())
		appendAll(t, p, 2<<20, ackLog)

		// The lone one comes back and is killed on its way, again and again.
		for range 4 {
			if err := alone.Launch(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond))))
			alone.Kill()
		}
		if err := alone.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle(t, p)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		audited(t, c, ackLog)
	}
}

func open(t *testing.T, addrs []string) *proposer.Proposer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	p, err := proposer.Open(ctx, proposer.Config{Acceptors: addrs, Timeline: timeline})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func settle(t *testing.T, p *proposer.Proposer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	if err := workload.Settle(ctx, p); err != nil {
		t.Fatalf("not every acceptor holds everything: %v: %+v", err, p.Status())
	}
}

// appendAll appends about so many bytes, waits for them, and records the acks.
func appendAll(t *testing.T, p *proposer.Proposer, total int, ackLog string) {
	t.Helper()
	seed := rand.Uint64()
	acks, err := workload.OpenAckLog(ackLog, timeline, seed)
	if err != nil {
		t.Fatal(err)
	}
	defer acks.Close()
	payloads := workload.NewPayloads(seed)
	for counter := uint64(0); total > 0; counter++ {
		data := make([]byte, 1+rand.IntN(128<<10))
		payloads.Fill(counter, data)
		ctx, cancel := context.WithTimeout(t.Context(), testWait)
		begin, end, err := p.Append(ctx, data)
		if err == nil {
			err = p.Wait(ctx, end)
		}
		cancel()
		if err == nil {
			err = acks.Generated(counter, begin, end, checksum(data))
		}
		if err != nil {
			t.Fatal(err)
		}
		total -= len(data)
	}
}
