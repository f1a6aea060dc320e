package main

import dto "github.com/prometheus/client_model/go"

// sample is one metric as it was gathered.
type sample = dto.Metric

func counterOf(m *sample) float64        { return m.GetCounter().GetValue() }
func histogramCount(m *sample) float64   { return float64(m.GetHistogram().GetSampleCount()) }
func histogramSeconds(m *sample) float64 { return m.GetHistogram().GetSampleSum() }
