package promwrite

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/gogo/protobuf/proto"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// row is a row of a batch as the tests compare it.
type row struct {
	Labels      string
	Key         model.Key
	Kind        model.Kind
	Time, Start int64
	Value       string
}

// toldMetadata is the metadata of a family as the tests compare it.
type toldMetadata struct {
	Family string
	model.Metadata
}

// outcome is what a walk or upstream's decoder makes of a body.
type outcome struct {
	Rows     []row
	Left     write.Counts
	Empty    int
	Metadata []toldMetadata
}

// walked returns what the walker makes of a body.
func walked(v version, raw []byte) (o outcome, err error) {
	w, b := new(walker), new(model.Batch)
	w.start(v, raw, seed, testLimits(), b, func(int64) error { return nil })
	if err := w.walk(); err != nil {
		return o, err
	}
	var lb model.LabelsBuilder
	for i, k := range b.Keys {
		lb.Reset()
		w.BuildLabels(i, &lb)
		name := canonicalName(&lb)
		for _, f := range model.Families() {
			c := b.Columns(f)
			for _, floats := range []bool{true, false} { // as upstream has them, floats before histograms
				for j := int(c.Begin(i)); j < int(c.End(i)); j++ {
					if (c.Kind(j) == model.KindFloat) != floats {
						continue
					}
					r := row{name, k, c.Kind(j), c.Times[j], c.Start(j), fmt.Sprintf("%x", c.Values[j])}
					if r.Kind != model.KindFloat {
						r.Value = fmt.Sprintf("%x", c.Blob(j))
					}
					o.Rows = append(o.Rows, r)
				}
			}
		}
	}
	o.Left, o.Empty = w.left.Counts(), w.empty
	for _, m := range w.metadata {
		o.Metadata = append(o.Metadata, toldMetadata{string(m.family.slice(raw)), model.Metadata{
			Type: m.typ.word(), Help: string(m.help.slice(raw)), Unit: string(m.unit.slice(raw)),
		}})
	}
	return o, nil
}

// canonicalName formats a label set, or returns "duplicate", which is detected when the series is
// pushed.
func canonicalName(lb *model.LabelsBuilder) string {
	l, err := lb.Append(nil)
	if err != nil {
		return "duplicate"
	}
	return model.Labels(l).String()
}

// expectation collects the expected result of a walk, by upstream's decoder.
type expectation struct {
	outcome
	// ordered: the labels of every series are in order, so that the keys need no correction later.
	ordered bool
}

// series takes one series: its labels in the order in which they came, and its rows.
func (e *expectation) series(pairs []string, refused error, rows []row, left write.Counts) {
	var lb model.LabelsBuilder
	named, last := false, ""
	for i := 0; i+1 < len(pairs); i += 2 {
		e.ordered = e.ordered && pairs[i+1] != "" && (i == 0 || pairs[i] > last)
		last = pairs[i]
		lb.Add([]byte(pairs[i]), []byte(pairs[i+1]))
		named = named || pairs[i] == model.NameLabel && pairs[i+1] != ""
	}
	if refused != nil || !named {
		for _, r := range rows {
			left.Add(countOf(r.Kind))
		}
		rows = nil
	}
	e.Left.Add(left)
	l, err := lb.Append(nil)
	if err != nil {
		e.ordered = false
	}
	for _, r := range rows {
		r.Labels, r.Key = canonicalName(&lb), model.Labels(l).Key(seed, model.Metrics)
		e.Rows = append(e.Rows, r)
	}
}

func countOf(k model.Kind) write.Counts {
	switch k {
	case model.KindHistogram:
		return write.Counts{Histograms: 1}
	case model.KindExemplar:
		return write.Counts{Exemplars: 1}
	}
	return write.Counts{Samples: 1}
}

// add adds a row, or counts it as left out.
func add(rows *[]row, left *write.Counts, k model.Kind, ms, startMs int64, value string, err error) {
	t, ok := nanoseconds(ms)
	start, ok2 := nanoseconds(startMs)
	if err != nil || !ok || !ok2 {
		left.Add(countOf(k))
		return
	}
	*rows = append(*rows, row{Kind: k, Time: t, Start: start, Value: value})
}

// exemplarValue makes the stored form of an exemplar.
func exemplarValue(value float64, pairs []string) (string, error) {
	var lb model.LabelsBuilder
	runes := 0
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if !utf8.ValidString(pairs[i]) || !utf8.ValidString(pairs[i+1]) {
			return "", errors.New("not UTF-8")
		}
		runes += utf8.RuneCountInString(pairs[i]) + utf8.RuneCountInString(pairs[i+1])
		lb.Add([]byte(pairs[i]), []byte(pairs[i+1]))
	}
	if runes > 128 {
		return "", errors.New("too long")
	}
	l, err := lb.Append(nil)
	return fmt.Sprintf("%x", model.AppendExemplar(nil, &model.Exemplar{Value: math.Float64bits(value), Labels: l})), err
}

// histogramValue makes the stored form of a histogram, by what upstream would do with it.
func histogramValue(u *histogram.Histogram, f *histogram.FloatHistogram) (string, error) {
	m := &model.Histogram{}
	shared := func(schema int32, hint histogram.CounterResetHint, sum, threshold float64, pos, neg []histogram.Span, custom []float64) {
		m.Schema, m.Gauge, m.Sum, m.ZeroThreshold = schema, hint == histogram.GaugeType, math.Float64bits(sum), math.Float64bits(threshold)
		for _, s := range pos {
			m.PositiveSpans = append(m.PositiveSpans, model.HistogramSpan{Offset: s.Offset, Length: s.Length})
		}
		for _, s := range neg {
			m.NegativeSpans = append(m.NegativeSpans, model.HistogramSpan{Offset: s.Offset, Length: s.Length})
		}
		m.Custom = floatBits(custom)
	}
	var err error
	if f != nil {
		if f.Schema > 8 && f.Schema <= 52 {
			if err := f.ReduceResolution(8); err != nil {
				return "", err
			}
		}
		err = f.Validate()
		shared(f.Schema, f.CounterResetHint, f.Sum, f.ZeroThreshold, f.PositiveSpans, f.NegativeSpans, f.CustomValues)
		m.Float, m.Count, m.ZeroCount = true, math.Float64bits(f.Count), math.Float64bits(f.ZeroCount)
		m.Positive, m.Negative = floatBits(f.PositiveBuckets), floatBits(f.NegativeBuckets)
	} else {
		if u.Schema > 8 && u.Schema <= 52 {
			if err := u.ReduceResolution(8); err != nil {
				return "", err
			}
		}
		err = u.Validate()
		shared(u.Schema, u.CounterResetHint, u.Sum, u.ZeroThreshold, u.PositiveSpans, u.NegativeSpans, u.CustomValues)
		m.Count, m.ZeroCount = u.Count, u.ZeroCount
		for _, v := range u.PositiveBuckets {
			m.Positive = append(m.Positive, uint64(v))
		}
		for _, v := range u.NegativeBuckets {
			m.Negative = append(m.Negative, uint64(v))
		}
	}
	return fmt.Sprintf("%x", model.AppendHistogram(nil, m)), err
}

func floatBits(vs []float64) (bits []uint64) {
	for _, v := range vs {
		bits = append(bits, math.Float64bits(v))
	}
	return bits
}

// expectedV1 returns the expected result of a walk over a request, by upstream's decoder.
func expectedV1(req *prompb.WriteRequest) *expectation {
	e := &expectation{ordered: true}
	words := func(ls []prompb.Label) (pairs []string) {
		for _, l := range ls {
			pairs = append(pairs, l.Name, l.Value)
		}
		return pairs
	}
	for i := range req.Timeseries {
		ts := &req.Timeseries[i]
		var rows []row
		var left write.Counts
		for _, s := range ts.Samples {
			add(&rows, &left, model.KindFloat, s.Timestamp, 0, fmt.Sprintf("%x", math.Float64bits(s.Value)), nil)
		}
		for _, h := range ts.Histograms {
			var f *histogram.FloatHistogram
			if h.IsFloatHistogram() {
				f = h.ToFloatHistogram()
			}
			value, err := histogramValue(h.ToIntHistogram(), f)
			add(&rows, &left, model.KindHistogram, h.Timestamp, 0, value, err)
		}
		for _, x := range ts.Exemplars {
			value, err := exemplarValue(x.Value, words(x.Labels))
			add(&rows, &left, model.KindExemplar, x.Timestamp, 0, value, err)
		}
		e.series(words(ts.Labels), nil, rows, left)
	}
	for _, m := range req.Metadata {
		if m.MetricFamilyName != "" {
			e.Metadata = append(e.Metadata, toldMetadata{m.MetricFamilyName, model.Metadata{
				Type: metricType(m.Type).word(), Help: m.Help, Unit: m.Unit,
			}})
		}
	}
	return e
}

// expectedV2 does the same for version 2.
func expectedV2(req *writev2.Request) *expectation {
	e := &expectation{ordered: true}
	words := func(refs []uint32) (pairs []string, err error) {
		for _, r := range refs {
			if int(r) >= len(req.Symbols) {
				return nil, errors.New("reference")
			}
			pairs = append(pairs, req.Symbols[r])
		}
		if len(pairs)%2 != 0 {
			return nil, errors.New("odd")
		}
		return pairs, nil
	}
	for i := range req.Timeseries {
		ts := &req.Timeseries[i]
		if len(ts.Samples)+len(ts.Histograms)+len(ts.Exemplars) == 0 {
			e.Empty++
			continue
		}
		created := createdTimestamp(ts)
		start := func(ms int64) int64 {
			if ms == 0 {
				return created
			}
			return ms
		}
		pairs, refused := words(ts.LabelsRefs)
		meta, err := ts.ToMetadata(req.Symbols)
		if refused == nil {
			refused = err
		}
		if _, ok := nanoseconds(created); refused == nil && !ok {
			refused = errors.New("created")
		}
		var rows []row
		var left write.Counts
		for _, s := range ts.Samples {
			add(&rows, &left, model.KindFloat, s.Timestamp, start(s.StartTimestamp), fmt.Sprintf("%x", math.Float64bits(s.Value)), nil)
		}
		for _, h := range ts.Histograms {
			var f *histogram.FloatHistogram
			if h.IsFloatHistogram() {
				f = h.ToFloatHistogram()
			}
			value, err := histogramValue(h.ToIntHistogram(), f)
			add(&rows, &left, model.KindHistogram, h.Timestamp, start(h.StartTimestamp), value, err)
		}
		for _, x := range ts.Exemplars {
			pairs, err := words(x.LabelsRefs)
			value := ""
			if err == nil {
				value, err = exemplarValue(x.Value, pairs)
			}
			add(&rows, &left, model.KindExemplar, x.Timestamp, 0, value, err)
		}
		before := len(e.Rows)
		e.series(pairs, refused, rows, left)
		if ts.Metadata.Type == 0 && meta.Help == "" && meta.Unit == "" || len(e.Rows) == before {
			continue
		}
		name := ""
		for j := 0; j < len(pairs); j += 2 {
			if pairs[j] == model.NameLabel && pairs[j+1] != "" {
				name = pairs[j+1]
			}
		}
		typ := metricType(ts.Metadata.Type)
		e.Metadata = append(e.Metadata, toldMetadata{name[:len(name)-suffix(typ, []byte(name))], model.Metadata{Type: typ.word(), Help: meta.Help, Unit: meta.Unit}})
	}
	e.Metadata = slices.Compact(e.Metadata) // what one series after the other says is told once
	return e
}

// createdTimestamp reads field 6, which upstream's decoder keeps as it stands.
func createdTimestamp(ts *writev2.TimeSeries) (ms int64) {
	buf := proto.NewBuffer(ts.XXX_unrecognized)
	for {
		tag, err := buf.DecodeVarint()
		if err != nil {
			return ms
		}
		switch protowire.Type(tag & 7) {
		case protowire.VarintType:
			v, _ := buf.DecodeVarint()
			if tag>>3 == 6 {
				ms = int64(v)
			}
		case protowire.Fixed64Type:
			_, _ = buf.DecodeFixed64()
		case protowire.Fixed32Type:
			_, _ = buf.DecodeFixed32()
		case protowire.BytesType:
			_, _ = buf.DecodeRawBytes(false)
		}
	}
}

// fataler is a test or a property.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// compare compares the walker's result with upstream's.
func compare(t fataler, v version, raw []byte, want *expectation) {
	t.Helper()
	got, err := walked(v, raw)
	if err != nil {
		t.Fatalf("walk: %v", err)
	}
	if v == v2 {
		got.Metadata = slices.Compact(got.Metadata)
	}
	if !want.ordered {
		for _, o := range []*outcome{&got, &want.outcome} {
			for i := range o.Rows {
				o.Rows[i].Key = model.Key{}
			}
		}
	}
	if diff := cmp.Diff(want.outcome, got); diff != "" {
		t.Fatalf("%s", diff)
	}
}

func marshalV1(t testing.TB, req *prompb.WriteRequest) []byte {
	t.Helper()
	raw, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func marshalV2(t testing.TB, req *writev2.Request) []byte {
	t.Helper()
	raw, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
