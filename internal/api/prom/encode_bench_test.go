package prom

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

// BenchmarkMatrix encodes 100 series of 1,000 samples; bytes are of JSON.
func BenchmarkMatrix(b *testing.B) {
	var m promql.Matrix
	for i := range 100 {
		s := promql.Series{Metric: labels.FromStrings("__name__", "up", "job", "a")}
		for j := range 1000 {
			s.Floats = append(s.Floats, promql.FPoint{T: 1_700_000_000_000 + int64(j)*15000, F: float64(i*j) / 7})
		}
		m = append(m, s)
	}
	out := unsent()
	b.ReportAllocs()
	for b.Loop() {
		out.matrix(m)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/sample")
}
