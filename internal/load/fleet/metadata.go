package fleet

import (
	"strconv"

	"github.com/shaledb/shale/internal/load/values"
)

// The types of metrics, with their numbers in both versions of remote write.
const (
	TypeCounter        = 1
	TypeGauge          = 2
	TypeHistogram      = 3
	TypeGaugeHistogram = 4
)

// GaugeHistogram reports whether the histograms of a metric are gauges. One metric in four is, except those
// with custom bounds: a scraper makes these from classic histograms, which count.
func (f *Fleet) GaugeHistogram(metric int) bool {
	return f.Value.Histogram() && f.Value != values.HistogramCustom && metric%4 == 3
}

// MetricType returns the type of a metric.
func (f *Fleet) MetricType(metric int) int {
	switch {
	case f.Value == values.Counter:
		return TypeCounter
	case f.GaugeHistogram(metric):
		return TypeGaugeHistogram
	case f.Value.Histogram():
		return TypeHistogram
	}
	return TypeGauge
}

// TypeName returns the type in words.
func (f *Fleet) TypeName(metric int) string {
	return [...]string{
		TypeCounter: "counter", TypeGauge: "gauge", TypeHistogram: "histogram", TypeGaugeHistogram: "gaugehistogram",
	}[f.MetricType(metric)]
}

// AppendHelp appends the help text of a metric.
func (f *Fleet) AppendHelp(dst []byte, metric int) []byte {
	dst = strconv.AppendInt(append(dst, "Metric "...), int64(metric), 10)
	dst = append(dst, " of a load, by the model "...)
	return append(append(dst, f.Value.String()...), '.')
}

// Unit returns the unit of all metrics.
func (f *Fleet) Unit() string {
	if f.Value.Histogram() {
		return "seconds"
	}
	return ""
}
