package wal

import (
	"fmt"
	"testing"
)

func BenchmarkChecksum(b *testing.B) {
	for _, size := range []int{128, 8 << 10, 256 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			data := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				Checksum(data)
			}
		})
	}
}
