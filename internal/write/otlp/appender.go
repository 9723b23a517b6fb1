package otlp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// Memory in bytes of a sample in a batch, and of its series with the ends. fewFamilies is the least room for
// metadata.
const (
	rowBytes    = 8 + 8 + 8 + 1
	seriesBytes = model.KeyBytes + 4 + 4 + 4
	fewFamilies = 64
)

// appender puts the samples of one request into a batch, each as a series of its own. It is the batch's
// [model.LabelSource] until the push has returned.
type appender struct {
	batch   *model.Batch
	keys    model.KeyBuilder
	buckets int
	left    *write.Rejections
	// labels holds the canonical labels of all series, and ends has the end of each series' labels.
	labels  []byte
	ends    []uint32
	builder model.LabelsBuilder
	out     model.Histogram
	// families has the metadata of metric families.
	families []family

	reserve func(bytes int64) error
	room    write.Room
	// texts are the bytes of the texts in families.
	texts int64
	// err is the error that ended the request.
	err error
}

// family is the metadata of a metric family.
type family struct{ name, typ, help, unit string }

var (
	_ storage.AppenderV2    = (*appender)(nil)
	_ write.Reserver        = (*appender)(nil)
	_ write.CanonicalSource = (*appender)(nil)
)

// Append adds a sample; times are in milliseconds. Samples that cannot be stored are dropped and
// counted without an error. An error ends the request.
func (a *appender) Append(_ storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	if a.err != nil {
		return 0, a.err
	}
	n := write.Counts{Samples: 1}
	if h != nil || fh != nil {
		n = write.Counts{Histograms: 1}
	}
	at, ok := nanoseconds(t)
	start, ok2 := nanoseconds(st)
	if !ok || !ok2 {
		a.left.Add(write.ReasonTimeRange, n, func() string {
			return fmt.Sprintf("%s: the time %d ms or the start %d ms is not between the years 1677 and 2262", shorten(ls.String()), t, st)
		})
		return 0, nil
	}
	if a.err = a.roomFor(ls, &o); a.err != nil {
		return 0, a.err
	}
	rows := &a.batch.Samples
	if h == nil && fh == nil {
		rows.Append(at, math.Float64bits(v), start)
	} else if reason, why := a.histogram(h, fh, at, start); why != nil {
		a.left.Add(reason, n, func() string { return shorten(ls.String()) + ": " + why.Error() })
		return 0, nil
	}
	if a.err != nil {
		return 0, a.err
	}
	for i := range o.Exemplars {
		if a.exemplar(&o.Exemplars[i], at, ls); a.err != nil {
			return 0, a.err
		}
	}
	a.endSeries(ls)
	a.addFamily(&o)
	a.err = a.reserveRows()
	return 0, a.err
}

// Commit does nothing: the caller pushes the batch.
func (a *appender) Commit() error { return nil }

// Rollback does nothing.
func (a *appender) Rollback() error { return nil }

// endSeries ends the series of the last rows and gives it its labels and key.
func (a *appender) endSeries(ls labels.Labels) {
	a.builder.Reset()
	ls.Range(func(l labels.Label) { a.builder.Add([]byte(l.Name), []byte(l.Value)) })
	begin := len(a.labels)
	all, err := a.builder.Append(a.labels)
	if err == nil { // with duplicate names there are no labels, which the write path rejects
		a.labels = all
	}
	a.ends = append(a.ends, uint32(len(a.labels)))
	a.keys.Reset()
	l := model.Labels(a.labels[begin:])
	for name, value, rest, ok := l.Next(); ok; name, value, rest, ok = rest.Next() {
		a.keys.Label(name, value)
	}
	a.batch.EndSeries(a.keys.Key(l))
}

// histogram adds a histogram that Prometheus's own code considers valid.
func (a *appender) histogram(h *histogram.Histogram, fh *histogram.FloatHistogram, at, start int64) (reason string, why error) {
	o := &a.out
	o.Reset()
	if fh != nil {
		if err := fh.Validate(); err != nil {
			return write.ReasonHistogram, err
		}
		o.Float = true
		a.setCommon(fh.CounterResetHint, fh.Schema, fh.Sum, fh.ZeroThreshold, fh.PositiveSpans, fh.NegativeSpans, fh.CustomValues)
		o.Count, o.ZeroCount = math.Float64bits(fh.Count), math.Float64bits(fh.ZeroCount)
		for _, v := range fh.PositiveBuckets {
			o.Positive = append(o.Positive, math.Float64bits(v))
		}
		for _, v := range fh.NegativeBuckets {
			o.Negative = append(o.Negative, math.Float64bits(v))
		}
	} else {
		if err := h.Validate(); err != nil {
			return write.ReasonHistogram, err
		}
		a.setCommon(h.CounterResetHint, h.Schema, h.Sum, h.ZeroThreshold, h.PositiveSpans, h.NegativeSpans, h.CustomValues)
		o.Count, o.ZeroCount = h.Count, h.ZeroCount
		for _, v := range h.PositiveBuckets {
			o.Positive = append(o.Positive, uint64(v))
		}
		for _, v := range h.NegativeBuckets {
			o.Negative = append(o.Negative, uint64(v))
		}
	}
	switch {
	case math.IsNaN(math.Float64frombits(o.ZeroThreshold)):
		return write.ReasonHistogram, errors.New("the zero threshold is not a number")
	case max(len(o.Positive), len(o.Negative), len(o.PositiveSpans), len(o.NegativeSpans), len(o.Custom)) > a.buckets:
		return write.ReasonTooManyBuckets, fmt.Errorf("a histogram has more than %d buckets, spans or bounds (limits.histogram-buckets)", a.buckets)
	}
	rows := &a.batch.Samples
	if a.err = a.room.Blob(model.Samples, o.MaxBytes(), math.MaxInt, a.other()); a.err != nil {
		return "", nil
	}
	begin := len(rows.Bytes)
	rows.Bytes = model.AppendHistogram(rows.Bytes, o)
	rows.EndBlob(at, model.KindHistogram, begin, start)
	return "", nil
}

// setCommon fills in the fields that integer and float histograms share.
func (a *appender) setCommon(hint histogram.CounterResetHint, schema int32, sum, threshold float64, positive, negative []histogram.Span, custom []float64) {
	o := &a.out
	o.Gauge = hint == histogram.GaugeType
	o.Schema, o.Sum, o.ZeroThreshold = schema, math.Float64bits(sum), math.Float64bits(threshold)
	for _, s := range positive {
		o.PositiveSpans = append(o.PositiveSpans, model.HistogramSpan(s))
	}
	for _, s := range negative {
		o.NegativeSpans = append(o.NegativeSpans, model.HistogramSpan(s))
	}
	for _, v := range custom {
		o.Custom = append(o.Custom, math.Float64bits(v))
	}
}

// exemplar adds an exemplar of a sample. If it has no time of its own, it gets the sample's.
func (a *appender) exemplar(e *exemplar.Exemplar, at int64, series labels.Labels) {
	n := write.Counts{Exemplars: 1}
	runes, valid := 0, true
	a.builder.Reset()
	e.Labels.Range(func(l labels.Label) {
		runes += utf8.RuneCountInString(l.Name) + utf8.RuneCountInString(l.Value)
		valid = valid && utf8.ValidString(l.Name) && utf8.ValidString(l.Value)
		a.builder.Add([]byte(l.Name), []byte(l.Value))
	})
	ok := true
	if e.HasTs {
		at, ok = nanoseconds(e.Ts)
	}
	reason, why := "", ""
	switch {
	case !ok:
		reason, why = write.ReasonTimeRange, fmt.Sprintf("the time %d ms of an exemplar is not between the years 1677 and 2262", e.Ts)
	case !valid:
		reason, why = write.ReasonLabels, "the labels of an exemplar are not valid UTF-8"
	case runes > exemplar.ExemplarMaxLabelSetLength:
		reason, why = write.ReasonExemplar, fmt.Sprintf("the labels of an exemplar have more than %d characters", exemplar.ExemplarMaxLabelSetLength)
	}
	if reason == "" {
		if a.err = a.room.Blob(model.Exemplars, maxExemplarBytes, math.MaxInt, a.other()); a.err != nil {
			return
		}
		c := &a.batch.Exemplars
		begin := len(c.Bytes)
		c.Bytes = model.AppendExemplar(c.Bytes, &model.Exemplar{Value: math.Float64bits(e.Value)})
		all, err := a.builder.Append(c.Bytes)
		if err == nil {
			c.Bytes = all
			c.EndBlob(at, model.KindExemplar, begin, 0)
			return
		}
		c.Bytes = c.Bytes[:begin]
		reason, why = write.ReasonDuplicateLabel, "exemplar: "+err.Error()
	}
	a.left.Add(reason, n, func() string { return shorten(series.String()) + ": " + why })
}

// addFamily records the metadata of the metric's family unless it equals that of the previous sample.
func (a *appender) addFamily(o *storage.AOptions) {
	f := family{name: o.MetricFamilyName, typ: string(o.Metadata.Type), help: o.Metadata.Help, unit: o.Metadata.Unit}
	if f.name == "" || f.typ == "" && f.help == "" && f.unit == "" {
		return
	}
	if n := len(a.families); n > 0 && a.families[n-1] == f {
		return
	}
	f.name, f.help, f.unit = strings.Clone(f.name), strings.Clone(f.help), strings.Clone(f.unit)
	a.texts += int64(len(f.name) + len(f.help) + len(f.unit))
	a.families = append(a.families, f)
}

// nanoseconds converts a time from milliseconds. It returns false if the result does not fit into an
// int64.
func nanoseconds(ms int64) (ns int64, ok bool) {
	const limit = math.MaxInt64 / 1_000_000
	return ms * 1_000_000, ms <= limit && ms >= -limit
}

func shorten(s string) string { return strings.ToValidUTF8(s[:min(len(s), 250)], "") }

// maxExemplarBytes bounds a stored exemplar: its value, and each label with its lengths.
const maxExemplarBytes = 16 + exemplar.ExemplarMaxLabelSetLength*(utf8.UTFMax+12)

// roomFor makes room for a sample with labels, for its exemplars, and for the metadata of its family.
func (a *appender) roomFor(ls labels.Labels, o *storage.AOptions) error {
	b, other := a.batch, a.other()
	if len(b.Keys) == cap(b.Keys) {
		if err := a.room.MoreSeries(other); err != nil {
			return err
		}
		a.ends = model.Sized(a.ends, cap(b.Keys))
	}
	if err := a.room.MoreRows(model.Samples, 1, other); err != nil {
		return err
	}
	if err := a.room.MoreRows(model.Exemplars, len(o.Exemplars), other); err != nil {
		return err
	}
	if n := len(a.families); n == cap(a.families) {
		n = max(2*n, fewFamilies)
		if err := a.room.Reserve(a.room.Used() + other + int64(n)*int64(unsafe.Sizeof(family{}))); err != nil {
			return err
		}
		a.families = model.Sized(a.families, n)
	}
	return a.roomForLabels(ls)
}

// roomForLabels makes room for labels in canonical form.
func (a *appender) roomForLabels(ls labels.Labels) error {
	n := len(a.labels)
	ls.Range(func(l labels.Label) { n += 3 + 3*binary.MaxVarintLen32 + len(l.Name) + len(l.Value) })
	if n <= cap(a.labels) {
		return nil
	}
	n, err := write.Grow(cap(a.labels), n, 0, func(n int) error {
		return a.room.Reserve(a.room.Used() + a.other() + int64(n-cap(a.labels)))
	})
	if err != nil {
		return err
	}
	a.labels = model.Sized(a.labels, n)
	return nil
}

// other returns the bytes that are used besides the batch.
func (a *appender) other() int64 {
	return int64(cap(a.labels)) + int64(cap(a.families))*int64(unsafe.Sizeof(family{})) + a.texts
}

// reserveRows reserves memory for the rows and labels that have been added.
func (a *appender) reserveRows() error { return a.room.Reserve(a.room.Used() + a.other()) }

// Reserve reserves memory for the write path.
func (a *appender) Reserve(bytes int64) error { return a.reserve(bytes) }

// CanonicalLabels returns the labels of series i.
func (a *appender) CanonicalLabels(i int) model.Labels {
	begin := uint32(0)
	if i > 0 {
		begin = a.ends[i-1]
	}
	return model.Labels(a.labels[begin:a.ends[i]])
}

// BuildLabels adds the labels of series i.
func (a *appender) BuildLabels(i int, b *model.LabelsBuilder) {
	for n, v, rest, ok := a.CanonicalLabels(i).Next(); ok; n, v, rest, ok = rest.Next() {
		b.Add(n, v)
	}
}
