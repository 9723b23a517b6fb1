package prom

import (
	"bytes"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	common "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// exposition writes samples in the exposition formats of a scrape target.
type exposition struct {
	out     *api.Body
	quota   *model.Quota
	format  expfmt.Format
	encoded bytes.Buffer
	encoder expfmt.Encoder
	// family gathers a metric family, and charged is the memory charged for it. continues says that its first
	// piece has been written.
	family    *dto.MetricFamily
	charged   int64
	continues bool
}

// familyPiece is the number of samples of a family that are gathered before they are written as text. In the
// other formats a family is one message.
const familyPiece = 1000

// The memory of a sample, a label and a bucket as the encoder takes them, without their texts.
const (
	exposedSampleBytes = 400
	exposedLabelBytes  = 120
	exposedBucketBytes = 80
)

func newExposition(b *api.Body, f expfmt.Format, q *model.Quota) *exposition {
	e := &exposition{out: b, quota: q, format: f}
	e.encoder = expfmt.NewEncoder(&e.encoded, f)
	return e
}

func (e *exposition) isText() bool { return e.format.FormatType() == expfmt.TypeTextPlain }

// write writes samples, which must be ordered by metric name. It leaves out samples without a name and, in
// the text format, native histograms, for which that has no syntax. Histograms with custom buckets become
// classic histograms.
func (e *exposition) write(v promql.Vector) error {
	for i := range v {
		s := &v[i]
		name := s.Metric.Get(common.MetricNameLabel)
		if name == "" || s.H != nil && e.isText() && !s.H.UsesCustomBuckets() {
			continue
		}
		kind := kindOf(s.H)
		if e.family == nil || e.family.GetName() != name || e.family.GetType() != kind {
			if err := e.flush(); err != nil {
				return err
			}
			e.family = &dto.MetricFamily{Name: new(name), Type: kind.Enum()}
			e.continues = false
		}
		if err := e.add(s); err != nil {
			return err
		}
		if e.isText() && len(e.family.Metric) == familyPiece {
			if err := e.flush(); err != nil {
				return err
			}
		}
	}
	return e.flush()
}

func kindOf(h *histogram.FloatHistogram) dto.MetricType {
	switch {
	case h == nil:
		return dto.MetricType_UNTYPED
	case h.CounterResetHint == histogram.GaugeType:
		return dto.MetricType_GAUGE_HISTOGRAM
	}
	return dto.MetricType_HISTOGRAM
}

// add gathers a sample.
func (e *exposition) add(s *promql.Sample) error {
	bytes := int64(exposedSampleBytes + (s.Metric.Len()+1)*exposedLabelBytes)
	if s.H != nil {
		bytes += int64(exposedBucketBytes * (len(s.H.PositiveSpans) + len(s.H.NegativeSpans) + len(s.H.CustomValues)))
	}
	if err := e.quota.TakeBytes(bytes); err != nil {
		return err
	}
	e.charged += bytes
	m := &dto.Metric{TimestampMs: new(s.T)}
	hasInstance := false
	s.Metric.Range(func(l labels.Label) {
		if l.Name == common.MetricNameLabel {
			return
		}
		hasInstance = hasInstance || l.Name == "instance"
		m.Label = append(m.Label, &dto.LabelPair{Name: new(l.Name), Value: new(l.Value)})
	})
	if !hasInstance {
		// Otherwise the scraper would set instance to the address of this server.
		m.Label = append(m.Label, &dto.LabelPair{Name: new("instance"), Value: new("")})
	}
	switch {
	case s.H == nil:
		m.Untyped = &dto.Untyped{Value: new(s.F)}
	case s.H.UsesCustomBuckets():
		m.Histogram = classicHistogram(s.H)
	default:
		m.Histogram = nativeHistogram(s.H)
	}
	e.family.Metric = append(e.family.Metric, m)
	return nil
}

// flush writes the gathered samples of a family.
func (e *exposition) flush() error {
	if e.family == nil || len(e.family.Metric) == 0 {
		return nil
	}
	e.encoded.Reset()
	if err := e.encoder.Encode(e.family); err != nil {
		return fmt.Errorf("%w: federation: %w", model.ErrCorrupt, err)
	}
	text := e.encoded.Bytes()
	if e.continues {
		// The first piece has the type.
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	e.out.Buf = append(e.out.Buf, text...)
	e.out.Spill()
	e.family.Metric = e.family.Metric[:0]
	e.continues = true
	charged := e.charged
	e.charged = 0
	return e.quota.TakeBytes(-charged)
}

// nativeHistogram is for the exponential schemas.
func nativeHistogram(h *histogram.FloatHistogram) *dto.Histogram {
	return &dto.Histogram{
		SampleCountFloat: new(h.Count), SampleSum: new(h.Sum),
		Schema: new(h.Schema), ZeroThreshold: new(h.ZeroThreshold), ZeroCountFloat: new(h.ZeroCount),
		PositiveSpan: spans(h.PositiveSpans), PositiveCount: h.PositiveBuckets,
		NegativeSpan: spans(h.NegativeSpans), NegativeCount: h.NegativeBuckets,
	}
}

func spans(in []histogram.Span) []*dto.BucketSpan {
	var out []*dto.BucketSpan
	for _, s := range in {
		out = append(out, &dto.BucketSpan{Offset: new(s.Offset), Length: new(s.Length)})
	}
	return out
}

// classicHistogram turns the buckets of a histogram with custom bounds into cumulative ones. The encoder
// derives the bucket +Inf from the total count.
func classicHistogram(h *histogram.FloatHistogram) *dto.Histogram {
	out := &dto.Histogram{SampleCountFloat: new(h.Count), SampleSum: new(h.Sum)}
	it := h.PositiveBucketIterator()
	more := it.Next()
	total := 0.0
	for i, bound := range h.CustomValues {
		for more && int(it.At().Index) <= i {
			if int(it.At().Index) == i {
				total += it.At().Count
			}
			more = it.Next()
		}
		out.Bucket = append(out.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCountFloat: new(total)})
	}
	return out
}
