package model

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// drawHistogram draws any histogram, sensible or not: the codec does not judge.
func drawHistogram(t *rapid.T) *Histogram {
	word := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, StaleNaN, 1 << 63, math.MaxUint64}))
	words := rapid.SliceOfN(word, 0, 12)
	spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) HistogramSpan {
		return HistogramSpan{rapid.Int32().Draw(t, "offset"), rapid.Uint32().Draw(t, "length")}
	}), 0, 4)
	return &Histogram{
		Gauge: rapid.Bool().Draw(t, "gauge"), Float: rapid.Bool().Draw(t, "float"), Schema: rapid.Int32().Draw(t, "schema"),
		ZeroThreshold: word.Draw(t, "threshold"), Sum: word.Draw(t, "sum"), Count: word.Draw(t, "count"), ZeroCount: word.Draw(t, "zeros"),
		PositiveSpans: spans.Draw(t, "positive spans"), NegativeSpans: spans.Draw(t, "negative spans"),
		Positive: words.Draw(t, "positive"), Negative: words.Draw(t, "negative"), Custom: words.Draw(t, "custom"),
	}
}

// TestHistogramCodec: what is parsed is what was appended, in memory that was used before, and bytes that are
// cut short or followed by more are refused.
func TestHistogramCodec(t *testing.T) {
	var got Histogram
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistogram(t)
		b := AppendHistogram(nil, h)
		if err := got.Parse(b); err != nil {
			t.Fatal(err)
		}
		if back := AppendHistogram(nil, &got); string(back) != string(b) || !sameHistogram(h, &got) {
			t.Fatalf("%+v came back as %+v", h, &got)
		}
		if histogramIsStale(b) != (h.Sum == StaleNaN) {
			t.Fatal("stale")
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if err := got.Parse(b[:cut]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v", cut, len(b), err)
		}
		if err := got.Parse(append(b, 0)); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("a byte too many: %v", err)
		}
	})
}

func sameHistogram(a, b *Histogram) bool {
	empty := func(h Histogram) Histogram {
		h.PositiveSpans = append([]HistogramSpan{}, h.PositiveSpans...)
		h.NegativeSpans = append([]HistogramSpan{}, h.NegativeSpans...)
		h.Positive = append([]uint64{}, h.Positive...)
		h.Negative = append([]uint64{}, h.Negative...)
		h.Custom = append([]uint64{}, h.Custom...)
		return h
	}
	return reflect.DeepEqual(empty(*a), empty(*b))
}

// FuzzHistogram: whatever parses has these bytes and no others.
func FuzzHistogram(f *testing.F) {
	f.Add(AppendHistogram(nil, &Histogram{}))
	f.Add(AppendHistogram(nil, &Histogram{Float: true, Schema: -53, Custom: []uint64{1, 2}, PositiveSpans: []HistogramSpan{{0, 2}}, Positive: []uint64{3, 4}}))
	f.Add(AppendHistogram(nil, &Histogram{Gauge: true, Schema: 3, NegativeSpans: []HistogramSpan{{-5, 1}}, Negative: []uint64{7}, Sum: StaleNaN}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Histogram
		if err := h.Parse(b); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if back := AppendHistogram(nil, &h); string(back) != string(b) {
			t.Errorf("%x came back as %x", b, back)
		}
	})
}

func FuzzExemplar(f *testing.F) {
	f.Add(AppendExemplar(nil, &Exemplar{Value: 5, Labels: LabelsOf("trace_id", "abc")}))
	f.Add(AppendExemplar(nil, &Exemplar{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseExemplar(b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if back := AppendExemplar(nil, &e); string(back) != string(b) {
			t.Errorf("%x came back as %x", b, back)
		}
	})
}
