package load

import "strconv"

// The types of metrics, with their numbers in both versions of remote write.
const (
	typeCounter        = 1
	typeGauge          = 2
	typeHistogram      = 3
	typeGaugeHistogram = 4
)

// gaugeHistogram reports whether the histograms of a metric are gauges: one metric in four is, but for those with bounds
// of their own, which a scraper makes of classic histograms that count.
func (f *Fleet) gaugeHistogram(metric int) bool {
	return f.Value.Histogram() && f.Value != HistogramCustom && metric%4 == 3
}

// metricType returns the type of a metric.
func (f *Fleet) metricType(metric int) int {
	switch {
	case f.Value == Counter:
		return typeCounter
	case f.gaugeHistogram(metric):
		return typeGaugeHistogram
	case f.Value.Histogram():
		return typeHistogram
	}
	return typeGauge
}

// typeName returns the type in words.
func (f *Fleet) typeName(metric int) string {
	return [...]string{
		typeCounter: "counter", typeGauge: "gauge", typeHistogram: "histogram", typeGaugeHistogram: "gaugehistogram",
	}[f.metricType(metric)]
}

// cumulative reports whether the values count since some moment.
func (m ValueModel) cumulative() bool { return m == Counter || m.Histogram() }

// appendHelp appends the help text of a metric.
func (f *Fleet) appendHelp(dst []byte, metric int) []byte {
	dst = strconv.AppendInt(append(dst, "Metric "...), int64(metric), 10)
	dst = append(dst, " of a load, by the model "...)
	return append(append(dst, f.Value.String()...), '.')
}

// unit returns the unit of all metrics.
func (f *Fleet) unit() string {
	if f.Value.Histogram() {
		return "seconds"
	}
	return ""
}

// appendMetadata appends a request of remote write 1.0 with the metadata of the metrics [first, first+n).
func (f *Fleet) appendMetadata(dst []byte, first, n int) []byte {
	var one []byte
	for metric := first; metric < first+n; metric++ {
		one = appendVarint(one[:0], 1, uint64(f.metricType(metric)))
		one = appendField(one, tag(2, sized), []byte(f.metricName(metric)))
		one = appendField(one, tag(4, sized), f.appendHelp(nil, metric))
		one = appendField(one, tag(5, sized), []byte(f.unit()))
		dst = appendField(dst, tag(3, sized), one)
	}
	return dst
}
