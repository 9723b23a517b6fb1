package promwrite

import (
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// addHistogram parses the Histogram message in [p, end), of either version, and adds it. Prometheus's
// own code decides whether it is valid, so that both accept the same histograms.
func (w *walker) addHistogram(p, end int) error {
	h, n := &w.histogram, write.Counts{Histograms: 1}
	if err := h.read(w.decoded, p, end, w.version, w.buckets); err != nil {
		return err
	}
	t, ok := nanoseconds(h.ms)
	start, ok2 := nanoseconds(h.startMs)
	switch {
	case !ok || !ok2:
		w.leaveOutTime(n, h.ms, h.startMs)
		return nil
	case h.tooMany:
		w.leaveOut(write.ReasonTooManyBuckets, n, func() string {
			return fmt.Sprintf("a histogram has more than %d buckets, spans or bounds (limits.histogram-buckets)", w.buckets)
		})
		return nil
	}
	if err := h.build(); err != nil {
		w.leaveOut(write.ReasonHistogram, n, func() string { return fmt.Sprintf("at %d ms: %v", h.ms, err) })
		return nil
	}
	if err := w.roomForBlob(model.Samples, h.out.MaxBytes()); err != nil {
		return err
	}
	rows := &w.batch.Samples
	begin := len(rows.Bytes)
	rows.Bytes = model.AppendHistogram(rows.Bytes, &h.out)
	rows.EndBlob(t, model.KindHistogram, begin, start)
	if rows.Len()&0xff == 0 || write.CrossesStep(begin, len(rows.Bytes)) {
		return w.reserveRows()
	}
	return nil
}

// build makes the stored form of the parsed histogram, or returns an error if it is not valid. Like
// Prometheus, it reduces schemas 9 to 52, which are finer than the stored ones, to schema 8.
func (h *nativeHistogram) build() error {
	if math.IsNaN(math.Float64frombits(h.threshold)) {
		// Upstream's validation accepts this, but adding such histograms makes its engine loop forever.
		return errors.New("the zero threshold is not a number")
	}
	if h.isFloat {
		return h.buildFloat()
	}
	u := &h.integer
	*u = histogram.Histogram{
		Schema: h.schema, Sum: math.Float64frombits(h.sum), ZeroThreshold: math.Float64frombits(h.threshold),
		Count: h.count, ZeroCount: h.zeroCount(),
		PositiveSpans: h.positive.spans, PositiveBuckets: h.positive.deltas,
		NegativeSpans: h.negative.spans, NegativeBuckets: h.negative.deltas, CustomValues: h.bounds(),
	}
	if tooFine(u.Schema) {
		if err := u.ReduceResolution(histogram.ExponentialSchemaMax); err != nil {
			return err
		}
	}
	if err := u.Validate(); err != nil {
		return err
	}
	h.setCommon(u.Schema, u.PositiveSpans, u.NegativeSpans)
	o := &h.out
	o.Count, o.ZeroCount = u.Count, u.ZeroCount
	for _, v := range u.PositiveBuckets {
		o.Positive = append(o.Positive, uint64(v))
	}
	for _, v := range u.NegativeBuckets {
		o.Negative = append(o.Negative, uint64(v))
	}
	return nil
}

func (h *nativeHistogram) buildFloat() error {
	u := &h.float
	*u = histogram.FloatHistogram{
		Schema: h.schema, Sum: math.Float64frombits(h.sum), ZeroThreshold: math.Float64frombits(h.threshold),
		Count: math.Float64frombits(h.count), ZeroCount: math.Float64frombits(h.zeroCount()),
		PositiveSpans: h.positive.spans, PositiveBuckets: h.positive.counts,
		NegativeSpans: h.negative.spans, NegativeBuckets: h.negative.counts, CustomValues: h.bounds(),
	}
	if tooFine(u.Schema) {
		if err := u.ReduceResolution(histogram.ExponentialSchemaMax); err != nil {
			return err
		}
	}
	if err := u.Validate(); err != nil {
		return err
	}
	h.setCommon(u.Schema, u.PositiveSpans, u.NegativeSpans)
	o := &h.out
	o.Count, o.ZeroCount = h.count, h.zeroCount()
	for _, v := range u.PositiveBuckets {
		o.Positive = append(o.Positive, math.Float64bits(v))
	}
	for _, v := range u.NegativeBuckets {
		o.Negative = append(o.Negative, math.Float64bits(v))
	}
	return nil
}

func tooFine(schema int32) bool {
	return schema > histogram.ExponentialSchemaMax && histogram.IsExponentialSchemaReserved(schema)
}

// setCommon fills in the fields that integer and float histograms share. It keeps the bits of floats as
// they were sent.
func (h *nativeHistogram) setCommon(schema int32, positive, negative []histogram.Span) {
	o := &h.out
	o.Reset()
	o.Gauge, o.Float = h.hint == gaugeHint, h.isFloat
	o.Schema, o.Sum, o.ZeroThreshold = schema, h.sum, h.threshold
	for _, s := range positive {
		o.PositiveSpans = append(o.PositiveSpans, model.HistogramSpan(s))
	}
	for _, s := range negative {
		o.NegativeSpans = append(o.NegativeSpans, model.HistogramSpan(s))
	}
	for _, v := range h.custom {
		o.Custom = append(o.Custom, math.Float64bits(v))
	}
}
