package promql

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
)

// uniform reports whether all samples are histograms of a counter with the same layout and ordinary counts.
// Their buckets can then be added up one by one. Almost all series are like that.
func (m *mixed) uniform() bool {
	if len(m.floats) > 0 || len(m.histograms) == 0 {
		return false
	}
	first := m.histograms[0].H
	for _, p := range m.histograms {
		h := p.H
		if h.CounterResetHint == histogram.GaugeType || !sameLayout(h, first) || !ordinary(h.Count) || !ordinary(h.ZeroCount) {
			return false
		}
		for _, counts := range [][]float64{h.PositiveBuckets, h.NegativeBuckets} {
			for _, c := range counts {
				if !ordinary(c) {
					return false
				}
			}
		}
	}
	return !overlapsZeros(first)
}

func ordinary(count float64) bool { return count >= 0 && count <= math.MaxFloat64 }

// sameLayout reports whether histograms have the same buckets.
func sameLayout(a, b *histogram.FloatHistogram) bool {
	return a.Schema == b.Schema && a.ZeroThreshold == b.ZeroThreshold &&
		slices.Equal(a.PositiveSpans, b.PositiveSpans) && slices.Equal(a.NegativeSpans, b.NegativeSpans) &&
		len(a.PositiveBuckets) == len(b.PositiveBuckets) && len(a.NegativeBuckets) == len(b.NegativeBuckets) &&
		slices.Equal(a.CustomValues, b.CustomValues)
}

// overlapsZeros reports whether a bucket lies within the zero bucket. Upstream leaves such a bucket out of
// sums.
func overlapsZeros(h *histogram.FloatHistogram) bool {
	if h.UsesCustomBuckets() {
		return false
	}
	if it := h.PositiveBucketIterator(); it.Next() && it.At().Upper <= h.ZeroThreshold {
		return true
	}
	it := h.NegativeBucketIterator()
	return it.Next() && -it.At().Lower <= h.ZeroThreshold
}

// ownHistogramRate reports whether rates of the loaded samples are computed here. Upstream's implementation
// makes new histograms and walks all samples in each window; BenchmarkHistogramQuery compares.
func (w *windows) ownHistogramRate() bool {
	return (w.call.Func.Name == "rate" || w.call.Func.Name == "increase") && w.mixed.uniform()
}

// increase is the increase of a histogram over a window, before it is extrapolated.
type increase struct {
	first, last int // the samples [first, last)
	sum         histogram.FloatHistogram
}

// computeHistogramRates computes rates of uniform histograms. The rules and the order of additions are those
// of upstream's histogramRate and extrapolatedRate. Windows of several steps often have the same samples.
//
// Below a sum or an average, results are in memory that the next series reuses, and may have empty buckets:
// those do not change a sum, and are dropped from it at the end.
func (w *windows) computeHistogramRates() error {
	m, seconds := w.mixed, 1.0
	if w.call.Func.Name == "rate" {
		seconds = w.samples.Range.Seconds()
	}
	points := m.histograms
	m.resets = m.resets[:0]
	for i := 1; i < len(points); i++ {
		if points[i].H.DetectReset(points[i-1].H) {
			m.resets = append(m.resets, i)
		}
	}
	if w.reused = w.addsHistograms(); w.reused {
		if err := m.results.grow(m, w.mostValues(len(points))); err != nil {
			return err
		}
	}
	m.increase.first, m.increase.last = 0, 0
	var lo, hi int
	for i := range w.steps() {
		t := w.stepTime(i)
		for hi < len(points) && points[hi].T <= t {
			hi++
		}
		for lo < hi && points[lo].T <= t-w.width {
			lo++
		}
		if hi-lo < 2 {
			continue
		}
		if m.increase.first != lo || m.increase.last != hi {
			m.increaseOver(lo, hi)
			if !w.reused {
				m.increase.sum.Compact(0)
			}
		}
		e, sum := w.extrapolation(t, points[lo].T, points[hi-1].T, hi-lo), &m.increase.sum
		if sum.Count > 0 {
			if toZero := float64(e.sampled * (points[lo].H.Count / sum.Count)); toZero < e.toStart {
				e.toStart = toZero
			}
		}
		factor := e.factorFrom(e.toStart, seconds)
		switch {
		case w.reused:
			h := m.results.get(len(w.at))
			before := cap(h.PositiveBuckets) + cap(h.NegativeBuckets)
			scale(h, sum, factor)
			w.add(i, 0, h)
			if err := m.keep(8 * int64(cap(h.PositiveBuckets)+cap(h.NegativeBuckets)-before)); err != nil {
				return err
			}
		case w.ignoresHistograms():
			w.add(i, 0, sum)
		default:
			if err := w.addMade(i, 0, sum.Copy().Mul(factor)); err != nil {
				return err
			}
		}
	}
	return nil
}

// increaseOver sets the increase over the samples [lo, hi): the difference of the last and the first, and the
// value before each reset. If the second sample follows a reset, the first does not count.
func (m *mixed) increaseOver(lo, hi int) {
	m.increase.first, m.increase.last = lo, hi
	sum := &m.increase.sum
	m.histograms[hi-1].H.CopyTo(sum)
	sum.CounterResetHint = histogram.GaugeType
	from, _ := slices.BinarySearch(m.resets, lo+1)
	resets := m.resets[from:]
	if len(resets) > 0 && resets[0] == lo+1 {
		resets = resets[1:]
	} else {
		accumulate(sum, m.histograms[lo].H, -1)
	}
	for _, r := range resets {
		if r >= hi {
			break
		}
		accumulate(sum, m.histograms[r-1].H, 1)
	}
}

// accumulate adds a histogram of the same layout, or subtracts it if the sign is -1.
func accumulate(sum, h *histogram.FloatHistogram, sign float64) {
	sum.ZeroCount += sign * h.ZeroCount
	sum.Count += sign * h.Count
	sum.Sum += sign * h.Sum
	for i, c := range h.PositiveBuckets {
		sum.PositiveBuckets[i] += sign * c
	}
	for i, c := range h.NegativeBuckets {
		sum.NegativeBuckets[i] += sign * c
	}
}

// scale sets dst to a multiple of h. They share spans, which must not be changed.
func scale(dst, h *histogram.FloatHistogram, factor float64) {
	positive, negative := dst.PositiveBuckets[:0], dst.NegativeBuckets[:0]
	*dst = *h
	dst.ZeroCount *= factor
	dst.Count *= factor
	dst.Sum *= factor
	for _, c := range h.PositiveBuckets {
		positive = append(positive, c*factor)
	}
	for _, c := range h.NegativeBuckets {
		negative = append(negative, c*factor)
	}
	dst.PositiveBuckets, dst.NegativeBuckets = positive, negative
}
