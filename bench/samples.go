package main

import dto "github.com/prometheus/client_model/go"

// sample is one metric as it was gathered.
type sample = dto.Metric

func histogramSeconds(m *sample) float64 { return m.GetHistogram().GetSampleSum() }
