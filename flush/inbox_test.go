package flush

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func TestAFullInboxHoldsTheReceiverBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &fakeLog{}
		l, lane, _ := leader(t, log, func(c *Config) { c.InboxBytes = 3 * (100 + itemBytes) })
		at := firstLSN
		data := string(make([]byte, 100))
		for range 3 {
			put(t, lane, request(1, at, data))
			at += 100
		}
		done := make(chan error)
		go func() { done <- lane.Put(request(1, at, data)) }()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("a full inbox took one more")
		default:
		}
		l.Turn()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		turns(l)
		if p := l.Positions(); p.Flush != firstLSN+400 {
			t.Errorf("flush %v", p.Flush)
		}
	})
}

func TestAnEmptyInboxTakesEvenWhatExceedsIt(t *testing.T) {
	l, lane, _ := leader(t, &fakeLog{}, func(c *Config) { c.InboxBytes = 10 })
	put(t, lane, request(1, firstLSN, string(make([]byte, 5000))))
	turns(l)
	if p := l.Positions(); p.Flush != firstLSN+5000 {
		t.Errorf("flush %v", p.Flush)
	}
}

func TestInterruptWakesAReceiver(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"full inbox": func(c *Config) { c.InboxBytes = 1000 },
		"full node":  func(c *Config) { c.Pool = NewPool(0) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, lane, _ := leader(t, &fakeLog{}, change)
				put(t, lane, request(1, firstLSN, string(make([]byte, 300<<10))))
				other := l.Open(&fakeStream{})
				done := make(chan error)
				go func() { done <- other.Put(request(1, firstLSN, string(make([]byte, 300<<10)))) }()
				synctest.Wait()
				other.Interrupt()
				if err := <-done; err != ErrClosed {
					t.Errorf("got %v", err)
				}
				other.Interrupt()
				other.Close()
				lane.Close()
				turns(l)
				if l.InboxBytes() != 0 {
					t.Errorf("%d bytes are left", l.InboxBytes())
				}
			})
		})
	}
}

func TestThePoolIsBoundedAndGivesBack(t *testing.T) {
	p := NewPool(2 << 20)
	never := make(chan struct{})
	big := p.get(4, never)
	var small []*block
	for range 256 {
		small = append(small, p.get(0, never))
	}
	if p.Bytes() != 2<<20 {
		t.Errorf("%d bytes", p.Bytes())
	}
	over := make(chan struct{})
	close(over)
	if b := p.get(0, over); b != nil {
		t.Error("a block above the cap")
	}
	for _, b := range small {
		b.drop(1)
	}
	// Free small blocks make room for a large one.
	second := p.get(4, over)
	if second == nil || p.Bytes() != 2<<20 {
		t.Fatalf("no second large block; %d bytes", p.Bytes())
	}
	first := make(chan *block)
	go func() { first <- p.get(3, never) }()
	big.drop(1)
	b := <-first
	b.drop(1)
	second.drop(1)
	for range 10 {
		p.Trim()
	}
	if p.Bytes() != 0 {
		t.Errorf("%d bytes are kept without use", p.Bytes())
	}
}

func TestATinyAppendTakesATinyBlock(t *testing.T) {
	l, lane, _ := leader(t, &fakeLog{}, nil)
	put(t, lane, request(1, firstLSN, "tiny"))
	if got := l.config.Pool.Bytes(); got != classBytesMin {
		t.Errorf("%d bytes for a tiny append", got)
	}
	at := firstLSN + 4
	for range 200 {
		put(t, lane, request(1, at, string(make([]byte, 8<<10))))
		at += 8 << 10
	}
	if got := lane.fill.Load().class; got != classes-1 {
		t.Errorf("a busy lane fills blocks of class %d", got)
	}
	turns(l)
	if lane.fill.Load() != nil {
		t.Error("an idle lane keeps a block")
	}
	for range 10 {
		put(t, lane, request(1, at, "tiny"))
		at += 4
		turns(l)
	}
	put(t, lane, request(1, at, "tiny"))
	if got := lane.fill.Load().class; got != 0 {
		t.Errorf("a lane that has calmed down fills blocks of class %d", got)
	}
	turns(l)
}

// TestManyLanes lets several receivers race for one inbox and one small pool.
// Only one of them is elected; its bytes must arrive whole and in order.
func TestManyLanes(t *testing.T) {
	log := &fakeLog{}
	pool := NewPool(0)
	l := newWorld(log, func(c *Config) { c.Pool, c.InboxBytes = pool, 64<<10 })
	l.Start()
	s := &fakeStream{}
	lane := lead(t, l, s, 1, func() {})
	random := rand.New(rand.NewPCG(1, 2))
	var want bytes.Buffer
	for want.Len() < 2<<20 {
		b := make([]byte, 1+random.IntN(3000))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		want.Write(b)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			other := l.Open(&fakeStream{})
			defer other.Close()
			for range 200 {
				if i%2 == 0 {
					if _, err := other.Take(1000 * (i + 1)); err != nil {
						t.Error(err)
					}
					continue
				}
				put(t, other, request(7, firstLSN, "refused or ignored"))
			}
		})
	}
	at := firstLSN
	for data := want.Bytes(); len(data) > 0; {
		n := min(1+random.IntN(9000), len(data))
		put(t, lane, request(1, at, string(data[:n])))
		data, at = data[n:], at+wal.LSN(n)
	}
	wg.Wait()
	if _, err := l.Wait(context.Background(), func(p Positions) bool { return p.Flush == at }); err != nil {
		t.Fatal(err)
	}
	lane.Close()
	if err := l.Stop(context.Background(), &consensus.Error{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(log.data, want.Bytes()) {
		t.Error("the log does not hold what was sent")
	}
	if l.InboxBytes() != 0 {
		t.Errorf("%d bytes are left in the inbox", l.InboxBytes())
	}
	for range 40 {
		pool.Trim()
	}
	if pool.Bytes() != 0 {
		t.Errorf("%d bytes of the pool are not given back", pool.Bytes())
	}
}
