package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// secondsBuckets serves every duration: write, sync, acknowledgement and each
// stage, so that any two can be laid over each other.
//
// From 50 µs, below the fastest sync of a good disk, it doubles eight times to
// 12.8 ms, which bounds the error of a percentile by a factor of two where a
// healthy system lives. From there the steps are those people set alerts at, up to
// 30 s, where every time-out has long fired: 19 buckets in all.
func secondsBuckets() []float64 {
	return slices.Concat(
		prometheus.ExponentialBuckets(50e-6, 2, 9), // 50, 100, 200, 400, 800 µs, 1.6, 3.2, 6.4, 12.8 ms
		[]float64{25e-3, 50e-3, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
	)
}

// countBuckets serves numbers of things in a batch: powers of two up to 4,096.
func countBuckets() []float64 { return prometheus.ExponentialBuckets(1, 2, 13) }

// bytesBuckets serves sizes of batches and requests: powers of four from 64
// bytes, the smallest WAL record and its padding, to 16 MiB, a full inbox.
func bytesBuckets() []float64 { return prometheus.ExponentialBuckets(64, 4, 10) }
