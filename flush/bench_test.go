package flush

import (
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// steady is a loop in its steady state: each call of the result hands over and
// performs a batch of n appends of size bytes.
func steady(t testing.TB, n, size int) func() {
	log := &fakeLog{quiet: true}
	l := newWorld(log, func(c *Config) { c.Clock = func() int64 { return 0 } })
	s := &fakeStream{quiet: true}
	lane := lead(t, l, s, 1, func() { turns(l) })
	data := make([]byte, size)
	r := consensus.AppendRequest{Generation: 1, Term: 1, Begin: firstLSN, CRC: wal.Checksum(data)}
	return func() {
		for range n {
			to, err := lane.Take(size)
			if err != nil {
				t.Fatal(err)
			}
			copy(to, data)
			r.Data = to
			if err := lane.Append(&r); err != nil {
				t.Fatal(err)
			}
			r.Begin += wal.LSN(size)
		}
		turns(l)
		if s.err != nil {
			t.Fatal(s.err)
		}
	}
}

func TestNoAllocationPerAppend(t *testing.T) {
	batch := steady(t, 64, 8<<10)
	for range 10 {
		batch()
	}
	if n := testing.AllocsPerRun(100, batch); n > 1 {
		t.Errorf("%v allocations for a batch of 64 appends", n)
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, c := range []struct {
		name    string
		n, size int
	}{{"1x128", 1, 128}, {"64x128", 64, 128}, {"64x8KiB", 64, 8 << 10}, {"16x512KiB", 16, 512 << 10}} {
		b.Run(c.name, func(b *testing.B) {
			batch := steady(b, c.n, c.size)
			b.ReportAllocs()
			b.SetBytes(int64(c.n * c.size))
			for b.Loop() {
				batch()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.n), "ns/append")
		})
	}
}

// BenchmarkHandOff is the way of a message from a receiver's goroutine to the
// loop's and through it, with no disk and no network.
func BenchmarkHandOff(b *testing.B) {
	log := &fakeLog{quiet: true}
	l := newWorld(log, func(c *Config) { c.Clock = func() int64 { return 0 } })
	l.Start()
	s := &fakeStream{quiet: true}
	lane := lead(b, l, s, 1, func() {})
	data := make([]byte, 128)
	r := consensus.AppendRequest{Generation: 1, Term: 1, Begin: firstLSN, CRC: wal.Checksum(data)}
	b.ReportAllocs()
	for b.Loop() {
		to, err := lane.Take(len(data))
		if err != nil {
			b.Fatal(err)
		}
		copy(to, data)
		r.Data = to
		if err := lane.Append(&r); err != nil {
			b.Fatal(err)
		}
		r.Begin += 128
	}
	_ = l.Stop(b.Context(), draining)
	lane.Close()
}
