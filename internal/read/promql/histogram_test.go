package promql

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
)

// look reads the current sample of an iterator, into reused memory and into new memory, and compares. It
// returns the hint.
type look struct {
	it    chunkenc.Iterator
	whole *histogram.Histogram
	float *histogram.FloatHistogram
}

func (l *look) at(t *rapid.T, typ chunkenc.ValueType, s sample) histogram.CounterResetHint {
	if l.it.AtT() != s.at {
		t.Fatalf("stands at %d, want %d", l.it.AtT(), s.at)
	}
	want := chunkenc.ValFloat
	switch {
	case s.h != nil && s.h.Float:
		want = chunkenc.ValFloatHistogram
	case s.h != nil:
		want = chunkenc.ValHistogram
	}
	if typ != want {
		t.Fatalf("%v at %d, want %v", typ, s.at, want)
	}
	if s.h == nil {
		if at, v := l.it.At(); at != s.at || math.Float64bits(v) != s.v {
			t.Fatalf("(%d, %x), want (%d, %x)", at, math.Float64bits(v), s.at, s.v)
		}
		return 0
	}
	if rapid.Bool().Draw(t, "new memory") {
		l.whole, l.float = nil, nil
	}
	hint := histogram.CounterResetHint(255)
	if typ == chunkenc.ValHistogram && rapid.Bool().Draw(t, "as integers") {
		var at int64
		if at, l.whole = l.it.AtHistogram(l.whole); at != s.at || !sameInteger(l.whole, plainInteger(s.h)) {
			t.Fatalf("at %d: %s, want %s", at, l.whole, plainInteger(s.h))
		}
		hint = l.whole.CounterResetHint
	}
	var at int64
	if at, l.float = l.it.AtFloatHistogram(l.float); at != s.at || !sameFloat(l.float, plainFloat(s.h)) {
		t.Fatalf("at %d: %s, want %s", at, l.float, plainFloat(s.h))
	}
	if hint != 255 && hint != l.float.CounterResetHint {
		t.Fatalf("at %d: hints %d and %d of one sample", at, hint, l.float.CounterResetHint)
	}
	return l.float.CounterResetHint
}

// expectHint checks the hint of sample i: it is true, and it is given if the samples before i allow it.
func expectHint(all []sample, i int) histogram.CounterResetHint {
	h := all[i].h
	switch {
	case h.Sum == model.StaleNaN:
		return histogram.UnknownCounterReset
	case h.Gauge:
		return histogram.GaugeType
	case i == 0 || all[i-1].h == nil || all[i-1].h.Gauge || all[i-1].h.Sum == model.StaleNaN,
		plainFloat(h).DetectReset(plainFloat(all[i-1].h)):
		return histogram.UnknownCounterReset
	}
	return histogram.NotCounterReset
}

// TestMixedSeries walks series of floats and histograms by Next and Seek in any order, with hints, and
// compares with the samples themselves. One iterator serves several series.
func TestMixedSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sl slab
		var l look
		for range rapid.IntRange(1, 3).Draw(t, "series") {
			all := drawSamples(t)
			rows := rowsOf(all)
			s := &series{points: sl.copyRows(rows, 0)}
			l.it = s.Iterator(l.it)
			at := -1
			for range rapid.IntRange(0, 30).Draw(t, "steps") {
				var typ chunkenc.ValueType
				if rapid.IntRange(0, 3).Draw(t, "seek") > 0 {
					typ = l.it.Next()
					at = min(at+1, len(all))
				} else {
					to := rapid.Int64Range(-30, 100).Draw(t, "to")
					typ = l.it.Seek(to)
					for at = max(at, 0); at < len(all) && all[at].at < to; at++ {
					}
				}
				if at == len(all) {
					if typ != chunkenc.ValNone || l.it.Err() != nil {
						t.Fatalf("%v behind the end: %v", typ, l.it.Err())
					}
					continue
				}
				if rapid.Bool().Draw(t, "look") {
					if hint := l.at(t, typ, all[at]); all[at].h != nil && hint != expectHint(all, at) {
						t.Fatalf("hint %d of sample %d, want %d", hint, at, expectHint(all, at))
					}
				}
			}
		}
	})
}

// TestHistogramsStayValid: later calls do not change histograms that were returned in new memory, nor the
// bounds that copies share.
func TestHistogramsStayValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawSamples(t)
		var sl slab
		it := (&series{points: sl.copyRows(rowsOf(all), 0)}).Iterator(nil)
		var kept []*histogram.FloatHistogram
		var reused histogram.FloatHistogram
		for i := 0; it.Next() != chunkenc.ValNone; i++ {
			if all[i].h == nil {
				kept = append(kept, nil)
				continue
			}
			_, f := it.AtFloatHistogram(nil)
			kept = append(kept, f)
			// A copy shares the bounds; then its memory is reused.
			_, r := it.AtFloatHistogram(&reused)
			shared := r.Copy()
			kept[i] = shared
			if !sameFloat(f, shared) {
				t.Fatalf("%s and %s", f, shared)
			}
		}
		for i, f := range kept {
			if f != nil && !sameFloat(f, plainFloat(all[i].h)) {
				t.Fatalf("sample %d became %s", i, f)
			}
		}
	})
}

// TestBadHistograms: an invalid histogram ends the walk with an error, whichever way the iterator reaches
// it.
func TestBadHistograms(t *testing.T) {
	span := []model.HistogramSpan{{Offset: 0, Length: 1}}
	encode := func(h model.Histogram) []byte { return model.AppendHistogram(nil, &h) }
	for name, blob := range map[string][]byte{
		"cut short":              encode(model.Histogram{Positive: []uint64{1}, PositiveSpans: span})[:12],
		"no bytes":               {},
		"more spans":             encode(model.Histogram{PositiveSpans: span}),
		"more buckets":           encode(model.Histogram{Positive: []uint64{1}}),
		"huge span":              encode(model.Histogram{PositiveSpans: []model.HistogramSpan{{Length: math.MaxUint32}}}),
		"spans overlap":          encode(model.Histogram{Positive: []uint64{1, 1}, PositiveSpans: append(slices.Clone(span), model.HistogramSpan{Offset: -1, Length: 1})}),
		"negative spans":         encode(model.Histogram{Negative: []uint64{1}}),
		"unknown schema":         encode(model.Histogram{Schema: 53}),
		"zero bucket of NaN":     encode(model.Histogram{ZeroThreshold: 0x7ff8000000000000}),
		"bounds of exponents":    encode(model.Histogram{Custom: []uint64{1}}),
		"custom and zero":        encode(model.Histogram{Schema: -53, Custom: []uint64{1}, ZeroCount: 1}),
		"custom and negative":    encode(model.Histogram{Schema: -53, Custom: []uint64{1}, NegativeSpans: span, Negative: []uint64{1}}),
		"bucket beyond bounds":   encode(model.Histogram{Schema: -53, Positive: []uint64{1}, PositiveSpans: []model.HistogramSpan{{Offset: 2, Length: 1}}, Custom: []uint64{1}}),
		"bucket before bounds":   encode(model.Histogram{Schema: -53, Positive: []uint64{1}, PositiveSpans: []model.HistogramSpan{{Offset: -1, Length: 1}}, Custom: []uint64{1}}),
		"kind of another family": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var rows model.Rows
			rows.Append(1*nanosPerMilli, 1, 0)
			kind := model.KindHistogram
			if blob == nil {
				kind = model.KindExemplar
			}
			rows.AppendBlob(2*nanosPerMilli, kind, blob, 0)
			rows.AppendBlob(3*nanosPerMilli, model.KindHistogram, encode(model.Histogram{}), 0)
			var sl slab
			s := &series{points: sl.copyRows(&rows, 0)}
			for _, step := range []func(chunkenc.Iterator) chunkenc.ValueType{
				func(it chunkenc.Iterator) chunkenc.ValueType { it.Next(); return it.Next() },
				func(it chunkenc.Iterator) chunkenc.ValueType { return it.Seek(2) },
			} {
				it := s.Iterator(nil)
				if typ := step(it); typ != chunkenc.ValNone || !errors.Is(it.Err(), model.ErrCorrupt) {
					t.Errorf("%v: %v", typ, it.Err())
				}
				if it.Next() != chunkenc.ValNone || it.Seek(3) != chunkenc.ValNone || it.Err() == nil {
					t.Error("the walk goes on")
				}
			}
			// The sample after it can be read, and has no hint.
			it := s.Iterator(nil)
			if it.Seek(3) != chunkenc.ValHistogram {
				t.Fatal(it.Err())
			}
			if _, h := it.AtHistogram(nil); h.CounterResetHint != histogram.UnknownCounterReset {
				t.Errorf("hint %d", h.CounterResetHint)
			}
		})
	}
}

// TestHistogramsAllocateNothing keeps the engine's inner loop off the heap.
func TestHistogramsAllocateNothing(t *testing.T) {
	for _, float := range []bool{false, true} {
		var rows model.Rows
		for i := range uint64(100) {
			h := model.Histogram{Float: float, Schema: -53, Custom: []uint64{1, 2, 3}, Count: i, PositiveSpans: []model.HistogramSpan{{Length: 3}}, Positive: []uint64{i, 0, 0}}
			if float {
				h.Count, h.Positive = math.Float64bits(float64(i)), []uint64{math.Float64bits(float64(i)), 0, 0}
			}
			rows.AppendBlob(int64(i)*nanosPerMilli, model.KindHistogram, model.AppendHistogram(nil, &h), 0)
		}
		var sl slab
		s := &series{points: sl.copyRows(&rows, 0)}
		it := s.Iterator(nil)
		var whole histogram.Histogram
		var f histogram.FloatHistogram
		alloctest.AtMost(t, 0, 20, func() {
			it = s.Iterator(it)
			for typ := it.Next(); typ != chunkenc.ValNone; typ = it.Next() {
				if typ == chunkenc.ValHistogram {
					it.AtHistogram(&whole)
				}
				it.AtFloatHistogram(&f)
			}
		})
	}
}

// TestZerosOfCustomBuckets: the read path, like the write path, accepts a count and a width of -0.
func TestZerosOfCustomBuckets(t *testing.T) {
	h := model.Histogram{Float: true, Schema: -53, Custom: []uint64{1}, ZeroCount: 1 << 63, ZeroThreshold: 1 << 63}
	if err := checkHistogram(&h); err != nil {
		t.Error(err)
	}
	h.Float = false
	if err := checkHistogram(&h); err == nil {
		t.Error("2^63 observations of zero count as none")
	}
}
