package metrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Build identifies the program.
type Build struct {
	Version  string // of the release
	Revision string // of the source
}

// LogDrops is the log sink, seen from here. Its methods are called on every scrape.
type LogDrops interface {
	DroppedLines() uint64
	DroppedBytes() uint64
}

// NewProcess registers what every process of Holdfast has: build information,
// the Go runtime, the process itself, and what its log has dropped. logs may be nil.
func NewProcess(to prometheus.Registerer, build Build, logs LogDrops) error {
	r := &registry{to: to}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "build_info", Help: "Always 1; the labels say which program this is."},
		[]string{"version", "revision", "goversion"})
	info.WithLabelValues(build.Version, build.Revision, runtime.Version()).Set(1)
	r.add(info)
	if logs != nil {
		r.add(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + "log_dropped_lines_total",
			Help: "Log lines that were dropped because the reader of the log was too slow."},
			func() float64 { return float64(logs.DroppedLines()) }))
		r.add(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + "log_dropped_bytes_total",
			Help: "Bytes of the log lines that were dropped."},
			func() float64 { return float64(logs.DroppedBytes()) }))
	}
	r.add(collectors.NewGoCollector())
	r.add(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r.done()
}
