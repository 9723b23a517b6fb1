package promql

import "github.com/prometheus/prometheus/model/histogram"

// result is the values of a series or group at some of the steps, ascending.
type result struct {
	at     []int32
	values []float64
	// histograms is empty if all values are floats. Otherwise it has nil for those that are.
	histograms []*histogram.FloatHistogram
}

// reset empties the result and keeps its memory, but not the histograms.
func (r *result) reset() {
	clear(r.histograms)
	r.at, r.values, r.histograms = r.at[:0], r.values[:0], r.histograms[:0]
}

// add adds a value: the histogram, or the float if that is nil.
func (r *result) add(step int, f float64, h *histogram.FloatHistogram) {
	r.at, r.values, r.histograms = append(r.at, int32(step)), append(r.values, f), append(r.histograms, h)
}

// size returns the memory of the histograms, the largest without bounds of custom buckets, and the greatest
// number of those. Consecutive steps may share a histogram.
func (r *result) size() (all, largest, most int64) {
	var last *histogram.FloatHistogram
	var bounds lastBounds
	for _, h := range r.histograms {
		if h != last && h != nil {
			n := sizeOf(h)
			all, largest, most = all+n+bounds.sizeOf(h), max(largest, n), max(most, int64(len(h.CustomValues)))
		}
		last = h
	}
	return all, largest, most
}
