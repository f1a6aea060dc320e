package consensus

import (
	"fmt"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

func BenchmarkQuorumLSN(b *testing.B) {
	for _, n := range []int{3, 5, 7} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := wal.Membership{Generation: 1}
			for i := range n {
				m.Members = append(m.Members, wal.Member{ID: wal.NodeID(i + 1)})
			}
			at := func(n wal.NodeID) wal.LSN { return wal.LSN(n * 4096) }
			b.ReportAllocs()
			for b.Loop() {
				QuorumLSN(&m, at)
			}
		})
	}
}
