package proposer_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/proposer"
)

// BenchmarkAppendWait is the whole way through a proposer and three acceptors
// in memory, with some appends in flight.
func BenchmarkAppendWait(b *testing.B) {
	for _, size := range []int{128, 8 << 10, 64 << 10} {
		for _, inFlight := range []int{1, 64} {
			b.Run(fmt.Sprintf("%dB/%d", size, inFlight), func(b *testing.B) {
				p := open(b, newSink(b, 3).config())
				data := written(size, 1)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				appendWait(b, p, data, inFlight, b.N)
			})
		}
	}
}

// appendWait lets inFlight goroutines append n times in all, each waiting for its commit.
func appendWait(tb testing.TB, p *proposer.Proposer, data []byte, inFlight, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for range inFlight {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				_, end, err := p.Append(context.Background(), data)
				if err == nil {
					err = p.Wait(context.Background(), end)
				}
				if err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}
