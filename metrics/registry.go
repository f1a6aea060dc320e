package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// prefix begins every name.
const prefix = "holdfast_"

// registry makes metrics and registers them. Its first error is kept for done.
type registry struct {
	to   prometheus.Registerer // nil: nothing is registered
	made []prometheus.Collector
	err  error
}

func (r *registry) add(c prometheus.Collector) {
	if r.to == nil || r.err != nil {
		return
	}
	if err := r.to.Register(c); err != nil {
		r.err = fmt.Errorf("registering metrics: %w", err)
		return
	}
	r.made = append(r.made, c)
}

// done returns the first error, and leaves nothing registered if there was one.
func (r *registry) done() error {
	if r.err != nil {
		for _, c := range r.made {
			r.to.Unregister(c)
		}
	}
	return r.err
}

func (r *registry) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
	r.add(c)
	return c
}

func (r *registry) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
	r.add(g)
	return g
}

func (r *registry) gaugeVec(name, help, label string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, []string{label})
	r.add(g)
	return g
}

func (r *registry) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(histogramOpts(name, help, buckets))
	r.add(h)
	return h
}

// histogramOpts asks for a native histogram beside the classic one: buckets
// that grow by at most 10 %, at most 160 of them, reset at most once an hour.
func histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name:                            prefix + name,
		Help:                            help,
		Buckets:                         buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

// Counters is a counter for each value of a closed set.
type Counters[L ~string] struct {
	of    map[L]prometheus.Counter
	other prometheus.Counter
}

// Inc adds one to the counter of value. A value outside the set counts as "other".
func (c *Counters[L]) Inc(value L) { c.of1(value).Inc() }

// Add adds n, which is not negative.
func (c *Counters[L]) Add(value L, n float64) { c.of1(value).Add(n) }

func (c *Counters[L]) of1(value L) prometheus.Counter {
	if counter, ok := c.of[value]; ok {
		return counter
	}
	return c.other
}

const other = "other"

func counters[L ~string](r *registry, name, help, label string, values []L) *Counters[L] {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, []string{label})
	r.add(vec)
	c := &Counters[L]{of: make(map[L]prometheus.Counter, len(values)), other: vec.WithLabelValues(other)}
	for _, v := range values {
		c.of[v] = vec.WithLabelValues(string(v))
	}
	return c
}

// Durations is a histogram of seconds for each value of a closed set.
type Durations[L ~string] struct {
	of map[L]prometheus.Observer
}

// Observe records d for value; a value outside the set is not recorded.
func (h *Durations[L]) Observe(value L, d time.Duration) {
	if o, ok := h.of[value]; ok {
		o.Observe(d.Seconds())
	}
}

func durations[L ~string](r *registry, name, help, label string, values []L) *Durations[L] {
	vec := prometheus.NewHistogramVec(histogramOpts(name, help, secondsBuckets()), []string{label})
	r.add(vec)
	h := &Durations[L]{of: make(map[L]prometheus.Observer, len(values))}
	for _, v := range values {
		h.of[v] = vec.WithLabelValues(string(v))
	}
	return h
}
