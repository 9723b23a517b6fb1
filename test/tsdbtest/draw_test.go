package tsdbtest

import (
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"pgregory.net/rapid"
)

// sample is one value of a series: a float if both histograms are nil.
type sample struct {
	series int
	st, t  int64 // Unix milliseconds; st is 0 if it is unknown
	v      float64
	h      *histogram.Histogram
	fh     *histogram.FloatHistogram
}

func (s *sample) stale() bool {
	switch {
	case s.h != nil:
		return value.IsStaleNaN(s.h.Sum)
	case s.fh != nil:
		return value.IsStaleNaN(s.fh.Sum)
	}
	return value.IsStaleNaN(s.v)
}

// world is the input of both storages: series, and batches of samples in the order in which they are pushed.
type world struct {
	labels  []labels.Labels
	batches [][]sample
	// resolved are the batches with one sample left for each series and time: the one that wins.
	resolved [][]sample
	// begin and end bound the times.
	begin, end, step int64
}

func drawWorld(t *rapid.T) *world {
	w := &world{
		begin: rapid.SampledFrom([]int64{0, -300_000, 1_700_000_000_123}).Draw(t, "begin"),
		step:  rapid.SampledFrom([]int64{1000, 5000, 15_000}).Draw(t, "step"),
	}
	w.end = w.begin
	var all []sample
	for i := range rapid.IntRange(2, 7).Draw(t, "series") {
		g := generator{kinds: rapid.SampledFrom([]string{"f", "f", "h", "F", "c", "C", "fhFcC"}).Draw(t, "kinds")}
		names := []string{"m", "m", "m", "n"}
		if g.kinds == "f" {
			names = append(names, "f", "f") // has no histograms
		}
		pairs := []string{"__name__", rapid.SampledFrom(names).Draw(t, "name"), "i", fmt.Sprint(i)}
		for _, name := range []string{"a", "b"} {
			if v := rapid.SampledFrom([]string{"", "1", "2", "zzz"}).Draw(t, name); v != "" {
				pairs = append(pairs, name, v)
			}
		}
		w.labels = append(w.labels, labels.FromStrings(pairs...))
		all = append(all, drawSeries(t, w, &g, i)...)
	}
	w.batches = cut(t, all)
	w.resolved = resolve(w.batches)
	return w
}

// drawSeries draws the samples of a series, ascending in time, some of them twice.
func drawSeries(t *rapid.T, w *world, g *generator, series int) []sample {
	var out []sample
	at := w.begin
	for range rapid.IntRange(5, 70).Draw(t, "samples") {
		if rapid.IntRange(0, 9).Draw(t, "gap") == 0 {
			at += w.step * rapid.Int64Range(1, 40).Draw(t, "steps")
		}
		s := g.draw(t, at)
		out = append(out, s)
		if rapid.IntRange(0, 9).Draw(t, "twice") == 0 { // the same once more, or another value
			if rapid.Bool().Draw(t, "another") {
				s = g.draw(t, at)
			}
			out = append(out, s)
		}
		at += w.step
		if rapid.IntRange(0, 4).Draw(t, "jitter") == 0 {
			at += rapid.Int64Range(1-w.step, w.step).Draw(t, "ms")
		}
	}
	for i := range out {
		out[i].series = series
		w.end = max(w.end, out[i].t)
	}
	return out
}

// cut divides samples into batches: most of them in the order of time, some early or late.
func cut(t *rapid.T, all []sample) [][]sample {
	batches := make([][]sample, rapid.IntRange(1, 8).Draw(t, "batches"))
	if len(all) == 0 {
		return batches
	}
	first, last := all[0].t, all[0].t
	for i := range all {
		first, last = min(first, all[i].t), max(last, all[i].t)
	}
	disorder := rapid.SampledFrom([]int{0, 10, 2}).Draw(t, "disorder") // one of so many arrives at any time
	for _, s := range all {
		i := int((s.t - first) * int64(len(batches)-1) / max(1, last-first))
		if disorder > 0 && rapid.IntRange(1, disorder).Draw(t, "out of order") == 1 {
			i = rapid.IntRange(0, len(batches)-1).Draw(t, "batch")
		}
		batches[i] = append(batches[i], s)
	}
	for i, b := range batches {
		if rapid.IntRange(0, 3).Draw(t, "shuffle") == 0 && len(b) > 1 {
			batches[i] = rapid.Permutation(b).Draw(t, "batch in order")
		}
	}
	return batches
}

// generator draws values close to the previous ones: counters that grow and are reset, layouts that change a
// little.
type generator struct {
	// kinds are the kinds of samples: f floats, h and F histograms with integer and float counts, c and C custom
	// ones.
	kinds string
	whole *histogram.Histogram
	start int64
	v     float64
}

var oddFloats = []uint64{
	0, 1 << 63, math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), value.NormalNaN, 0x7ff0000000000001, 0xfff8000000000123, 1,
}

func (g *generator) draw(t *rapid.T, at int64) sample {
	s := sample{t: at}
	if rapid.IntRange(0, 3).Draw(t, "has a start") == 0 {
		if g.start == 0 || rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
			g.start = at - rapid.Int64Range(0, 5000).Draw(t, "start")
		}
		if s.st = g.start; s.st >= at {
			s.st = 0
		}
	}
	kind := rapid.SampledFrom([]byte(g.kinds)).Draw(t, "kind")
	odd := rapid.IntRange(0, 14).Draw(t, "odd")
	if kind == 'f' {
		switch odd {
		case 0:
			s.v = math.Float64frombits(value.StaleNaN)
			s.st = 0
		case 1:
			s.v = math.Float64frombits(rapid.SampledFrom(oddFloats).Draw(t, "float"))
		default:
			if g.v += float64(rapid.IntRange(0, 8).Draw(t, "more")) / 4; rapid.IntRange(0, 9).Draw(t, "reset") == 0 {
				g.v = 0
			}
			s.v = g.v
		}
		return s
	}
	var h *histogram.Histogram
	switch odd {
	case 0:
		h, s.st = &histogram.Histogram{Sum: math.Float64frombits(value.StaleNaN)}, 0
	default:
		h = g.histogram(t, kind == 'c' || kind == 'C')
	}
	if kind == 'h' || kind == 'c' {
		s.h = h
	} else {
		s.fh = h.ToFloat(nil)
	}
	return s
}

// histogram draws the successor of the last histogram, or a new one.
func (g *generator) histogram(t *rapid.T, custom bool) *histogram.Histogram {
	h := &histogram.Histogram{}
	if g.whole != nil && g.whole.UsesCustomBuckets() == custom && rapid.IntRange(0, 6).Draw(t, "other") > 0 {
		h = g.whole.Copy()
		if len(h.PositiveBuckets) > 0 {
			// The first bucket is absolute, all others are differences: so all of them grow.
			h.PositiveBuckets[0] += rapid.Int64Range(0, 2).Draw(t, "more")
		}
		if !custom {
			h.ZeroCount += rapid.Uint64Range(0, 2).Draw(t, "more zeros")
		}
	} else {
		if custom {
			h.Schema = histogram.CustomBucketsSchema
			h.CustomValues = rapid.SampledFrom([][]float64{{1, 2, 5, 10}, {1, 2, 3, 10}, {0.5, 1, 2, 5, 10}}).Draw(t, "bounds")
			h.PositiveSpans, h.PositiveBuckets = drawBuckets(t, 5)
		} else {
			h.Schema = rapid.SampledFrom([]int32{0, 0, 0, 1, -4, 8}).Draw(t, "schema")
			h.ZeroThreshold = rapid.SampledFrom([]float64{0, 0, 1.0 / 1024}).Draw(t, "threshold")
			h.ZeroCount = rapid.Uint64Range(0, 3).Draw(t, "zeros")
			h.PositiveSpans, h.PositiveBuckets = drawBuckets(t, 12)
			h.NegativeSpans, h.NegativeBuckets = drawBuckets(t, 12)
		}
		h.CounterResetHint = rapid.SampledFrom([]histogram.CounterResetHint{
			histogram.UnknownCounterReset, histogram.UnknownCounterReset, histogram.CounterReset, histogram.NotCounterReset, histogram.GaugeType,
		}).Draw(t, "hint")
	}
	h.Count = h.ZeroCount
	for _, buckets := range [][]int64{h.PositiveBuckets, h.NegativeBuckets} {
		n := int64(0)
		for _, d := range buckets {
			n += d
			h.Count += uint64(n)
		}
	}
	h.Sum = float64(rapid.IntRange(-4, 20).Draw(t, "sum")) / 4
	if rapid.IntRange(0, 9).Draw(t, "odd sum") == 0 {
		h.Sum = math.Float64frombits(rapid.SampledFrom(oddFloats).Draw(t, "sum bits"))
	}
	g.whole = h.Copy()
	return h
}

func drawBuckets(t *rapid.T, most int) (spans []histogram.Span, buckets []int64) {
	at, last := 0, int64(0)
	for range rapid.IntRange(0, 3).Draw(t, "spans") {
		offset, length := rapid.IntRange(0, 2).Draw(t, "offset"), rapid.IntRange(1, 3).Draw(t, "length")
		if at += offset + length; at > most {
			break
		}
		spans = append(spans, histogram.Span{Offset: int32(offset), Length: uint32(length)})
		for range length {
			n := rapid.Int64Range(0, 3).Draw(t, "bucket")
			buckets = append(buckets, n-last)
			last = n
		}
	}
	return spans, buckets
}
