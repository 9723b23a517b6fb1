package promql

import (
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/shaledb/shale/internal/model"
)

// decoder makes the engine's histograms from the blobs of a series. The caller owns what it returns, except
// for the bounds of custom buckets, which are shared; the engine's rules forbid writing to them.
type decoder struct {
	blobs *blobs
	// index is the point that h was decoded from, or -1.
	index int
	h     model.Histogram
	// bounds are the bounds of custom buckets that were returned last.
	bounds []float64
	hints  hints
}

func (d *decoder) reset(b *blobs) {
	d.blobs, d.index = b, -1
	d.hints.reset()
}

// decode decodes the i-th point, which must not be a float.
func (d *decoder) decode(i int) error {
	if d.index == i {
		return nil
	}
	d.index = -1
	if k := d.blobs.kinds[i]; k != model.KindHistogram {
		return fmt.Errorf("%w: expected a float or a histogram among samples, got kind %d", model.ErrCorrupt, k)
	}
	if err := d.h.Parse(d.blobs.blob(i)); err != nil {
		return err
	}
	if err := checkHistogram(&d.h); err != nil {
		return err
	}
	d.index = i
	return nil
}

// checkHistogram rejects what the engine would panic on or never finish. The engine trusts that buckets,
// spans and bounds fit each other. To add histograms it widens their zero buckets until they are equal,
// which NaN never is.
func checkHistogram(h *model.Histogram) error {
	if !histogram.IsKnownSchema(h.Schema) {
		return fmt.Errorf("%w: %w", model.ErrCorrupt, histogram.UnknownSchemaError(h.Schema))
	}
	if math.IsNaN(math.Float64frombits(h.ZeroThreshold)) {
		return fmt.Errorf("%w: histogram: the width of the zero bucket is NaN", model.ErrCorrupt)
	}
	reach, err := checkSpans(h.PositiveSpans, len(h.Positive))
	if err == nil {
		_, err = checkSpans(h.NegativeSpans, len(h.Negative))
	}
	if err != nil {
		return err
	}
	if !histogram.IsCustomBucketsSchema(h.Schema) {
		if len(h.Custom) > 0 {
			return fmt.Errorf("%w: histogram: schema %d must not have custom bounds", model.ErrCorrupt, h.Schema)
		}
		return nil
	}
	// A count or a width of -0 counts as zero.
	zeros := h.ZeroCount != 0 && !(h.Float && math.Float64frombits(h.ZeroCount) == 0)
	if len(h.NegativeSpans) > 0 || zeros || math.Float64frombits(h.ZeroThreshold) != 0 {
		return fmt.Errorf("%w: histogram: custom buckets must not have a zero bucket or negative buckets", model.ErrCorrupt)
	}
	if reach > int64(len(h.Custom))+1 || len(h.PositiveSpans) > 0 && h.PositiveSpans[0].Offset < 0 {
		return fmt.Errorf("%w: histogram: buckets reach beyond their %d bounds", model.ErrCorrupt, len(h.Custom))
	}
	return nil
}

// checkSpans returns the index after the last bucket.
func checkSpans(spans []model.HistogramSpan, buckets int) (reach int64, err error) {
	have := int64(0)
	for i, s := range spans {
		if i > 0 && s.Offset < 0 {
			return 0, fmt.Errorf("%w: histogram: spans overlap", model.ErrCorrupt)
		}
		have += int64(s.Length)
		reach += int64(s.Offset) + int64(s.Length)
	}
	if have != int64(buckets) {
		return 0, fmt.Errorf("%w: histogram: spans have %d buckets, got %d counts", model.ErrCorrupt, have, buckets)
	}
	return reach, nil
}

// stale reports whether the histogram marks the end of the series. As in upstream, only its sum is shown
// then.
func (d *decoder) stale() bool { return d.h.Sum == model.StaleNaN }

// integer fills h with the current histogram, which must have integer counts.
func (d *decoder) integer(h *histogram.Histogram) {
	*h = histogram.Histogram{
		Sum:           math.Float64frombits(d.h.Sum),
		PositiveSpans: h.PositiveSpans[:0], NegativeSpans: h.NegativeSpans[:0],
		PositiveBuckets: h.PositiveBuckets[:0], NegativeBuckets: h.NegativeBuckets[:0],
		CustomValues: h.CustomValues,
	}
	if d.stale() {
		h.CustomValues = nil
		return
	}
	h.CounterResetHint = d.hint()
	h.Schema, h.ZeroThreshold = d.h.Schema, math.Float64frombits(d.h.ZeroThreshold)
	h.Count, h.ZeroCount = d.h.Count, d.h.ZeroCount
	h.PositiveSpans, h.NegativeSpans = appendSpans(h.PositiveSpans, d.h.PositiveSpans), appendSpans(h.NegativeSpans, d.h.NegativeSpans)
	for _, b := range d.h.Positive {
		h.PositiveBuckets = append(h.PositiveBuckets, int64(b))
	}
	for _, b := range d.h.Negative {
		h.NegativeBuckets = append(h.NegativeBuckets, int64(b))
	}
	h.CustomValues = d.boundsOf(&d.h, h.CustomValues)
	if tooFine(h.Schema) {
		// The spans have been checked, and nothing else can fail.
		_ = h.ReduceResolution(histogram.ExponentialSchemaMax)
	}
}

// float fills h with the current histogram.
func (d *decoder) float(h *histogram.FloatHistogram) {
	d.fill(h, &d.h)
	if !d.stale() {
		h.CounterResetHint = d.hint()
	}
}

// fill fills h with fractional counts of a decoded histogram, without a reset hint.
func (d *decoder) fill(h *histogram.FloatHistogram, from *model.Histogram) {
	*h = histogram.FloatHistogram{
		Sum:           math.Float64frombits(from.Sum),
		PositiveSpans: h.PositiveSpans[:0], NegativeSpans: h.NegativeSpans[:0],
		PositiveBuckets: h.PositiveBuckets[:0], NegativeBuckets: h.NegativeBuckets[:0],
		CustomValues: h.CustomValues,
	}
	if from.Sum == model.StaleNaN {
		h.CustomValues = nil
		return
	}
	h.Schema, h.ZeroThreshold = from.Schema, math.Float64frombits(from.ZeroThreshold)
	if from.Float {
		h.Count, h.ZeroCount = math.Float64frombits(from.Count), math.Float64frombits(from.ZeroCount)
	} else {
		h.Count, h.ZeroCount = float64(from.Count), float64(from.ZeroCount)
	}
	h.PositiveSpans, h.NegativeSpans = appendSpans(h.PositiveSpans, from.PositiveSpans), appendSpans(h.NegativeSpans, from.NegativeSpans)
	h.PositiveBuckets = appendCounts(h.PositiveBuckets, from.Positive, from.Float)
	h.NegativeBuckets = appendCounts(h.NegativeBuckets, from.Negative, from.Float)
	h.CustomValues = d.boundsOf(from, h.CustomValues)
	if tooFine(h.Schema) {
		_ = h.ReduceResolution(histogram.ExponentialSchemaMax)
	}
}

func appendSpans(dst []histogram.Span, spans []model.HistogramSpan) []histogram.Span {
	dst = slices.Grow(dst, len(spans))
	for _, s := range spans {
		dst = append(dst, histogram.Span{Offset: s.Offset, Length: s.Length})
	}
	return dst
}

// appendCounts appends absolute counts. Integers are added up as integers and then converted one by one, so
// that rounding errors do not accumulate.
func appendCounts(dst []float64, buckets []uint64, float bool) []float64 {
	dst = slices.Grow(dst, len(buckets))
	sum := int64(0)
	for _, b := range buckets {
		if float {
			dst = append(dst, math.Float64frombits(b))
		} else {
			sum += int64(b)
			dst = append(dst, float64(sum))
		}
	}
	return dst
}

// tooFine reports a resolution that the engine reserves but does not know yet: its comparisons would panic.
// Upstream reduces the resolution when it reads, and so does this package.
func tooFine(schema int32) bool {
	return schema > histogram.ExponentialSchemaMax && schema <= histogram.ExponentialSchemaMaxReserved
}

// boundsOf returns the bounds of custom buckets: the ones that the caller already has, the ones returned
// last, or new ones. Copies of a histogram share their bounds, so they must never be written to.
func (d *decoder) boundsOf(from *model.Histogram, has []float64) []float64 {
	switch {
	case len(from.Custom) == 0:
		return nil
	case sameBits(from.Custom, has):
		return has
	case !sameBits(from.Custom, d.bounds):
		d.bounds = make([]float64, len(from.Custom))
		for i, b := range from.Custom {
			d.bounds[i] = math.Float64frombits(b)
		}
	}
	return d.bounds
}

func sameBits(bits []uint64, floats []float64) bool {
	if len(bits) != len(floats) {
		return false
	}
	for i, b := range bits {
		if math.Float64bits(floats[i]) != b {
			return false
		}
	}
	return true
}
