//go:build e2e

package reader

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/shaledb/shale/internal/app"
	"github.com/shaledb/shale/internal/model"
)

// row is a sample or an exemplar: bits of a float, or a blob.
type row struct {
	at, start int64
	kind      model.Kind
	bits      uint64
	blob      []byte
}

// series is a series with rows to push.
type series struct {
	labels                   model.Labels
	samples, exemplars, text []row
}

// batch is one push.
type batch struct {
	tenant string
	signal model.Signal
	series []series
}

// BuildLabels returns the labels of series i to the write path.
func (b *batch) BuildLabels(i int, to *model.LabelsBuilder) {
	for n, v, rest, ok := b.series[i].labels.Next(); ok; n, v, rest, ok = rest.Next() {
		to.Add(n, v)
	}
}

// push pushes a batch, in pieces that fit into the buffers.
func push(e *app.Engine, in *batch) error {
	const piece = 20_000
	for whole := in.series; len(whole) > 0; {
		n, rows := 0, 0
		for n < len(whole) && (n == 0 || rows+len(whole[n].samples)+len(whole[n].text) <= piece) {
			rows += len(whole[n].samples) + len(whole[n].exemplars) + len(whole[n].text)
			n++
		}
		if err := pushPiece(e, &batch{in.tenant, in.signal, whole[:n]}); err != nil {
			return err
		}
		if whole = whole[n:]; rows > piece/2 {
			if err := e.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func pushPiece(e *app.Engine, in *batch) error {
	b := e.Path().Batch(in.tenant, in.signal)
	defer e.Path().Recycle(b)
	b.Source = in
	for i := range in.series {
		s := &in.series[i]
		for _, x := range s.samples {
			if x.kind == model.KindFloat {
				b.Samples.Append(x.at, x.bits, x.start)
			} else {
				b.Samples.AppendBlob(x.at, x.kind, x.blob, x.start)
			}
		}
		for _, x := range s.exemplars {
			b.Exemplars.AppendBlob(x.at, x.kind, x.blob, 0)
		}
		for _, x := range s.text {
			b.Text.AppendBlob(x.at, x.kind, x.blob, 0)
		}
		b.EndSeries(s.labels.Key(e.Path().Seed(), in.signal))
	}
	res, err := e.Path().Push(context.Background(), b)
	if err == nil && len(res.Rejected) > 0 {
		err = fmt.Errorf("rejected: %v", res.Rejected)
	}
	return err
}

// shapes are sequences of values: for each codec, and each form of a column of integers, there is one that it
// suits best.
var shapes = []struct {
	name string
	// course returns a function that returns one value after the other.
	course func(r *rand.Rand) func(i int) float64
}{
	{"constant", func(*rand.Rand) func(int) float64 { return func(int) float64 { return 42 } }},
	{"constant-irrational", func(*rand.Rand) func(int) float64 { return func(int) float64 { return math.Pi } }},
	{"counter", func(r *rand.Rand) func(int) float64 {
		v := 0.0
		return func(int) float64 { v += float64(r.IntN(1000)); return v }
	}},
	{"regular", func(*rand.Rand) func(int) float64 { return func(i int) float64 { return float64(15 * i) } }},
	{"steps", func(r *rand.Rand) func(int) float64 {
		v := 0.0
		return func(int) float64 {
			if r.IntN(50) == 0 {
				v = float64(r.IntN(1 << 30))
			}
			return v
		}
	}},
	{"bytes", func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return float64(1<<34 + 4096*r.Int64N(1<<20)) }
	}},
	{"digits", func(r *rand.Rand) func(int) float64 { return func(int) float64 { return float64(r.IntN(5)) } }},
	{"outliers", func(r *rand.Rand) func(int) float64 {
		return func(i int) float64 { return float64(r.IntN(8) + i%97/96*r.IntN(1<<40)) }
	}},
	{"decimals", func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return float64(r.IntN(100_000)-50_000) / 1000 }
	}},
	{"decimals-but-some", func(r *rand.Rand) func(int) float64 {
		return func(i int) float64 {
			switch i % 40 {
			case 7:
				return math.Float64frombits(model.StaleNaN)
			case 23:
				return math.Copysign(0, -1)
			}
			return float64(r.IntN(10_000)) / 100
		}
	}},
	{"seconds", func(r *rand.Rand) func(int) float64 {
		v := 0.0
		return func(int) float64 {
			for range r.IntN(5) {
				v += float64(r.IntN(1e9)) / 1e9
			}
			return v
		}
	}},
	{"sometimes", func(r *rand.Rand) func(int) float64 {
		v := 0
		return func(int) float64 { v += r.IntN(3) / 2 * r.IntN(1<<20); return float64(v) }
	}},
	{"smooth", func(*rand.Rand) func(int) float64 {
		v := 1000.1
		return func(i int) float64 {
			if i%3 == 0 {
				v = math.Float64frombits(math.Float64bits(v) ^ uint64(i%5)<<20)
			}
			return v
		}
	}},
	{"whole-bits", func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return math.Ldexp(1+float64(r.IntN(64))/64, r.IntN(3)+300) }
	}},
	{"random", func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return math.Float64frombits(r.Uint64()) }
	}},
	{"walk", func(r *rand.Rand) func(int) float64 {
		v := 0.0
		return func(int) float64 { v += r.NormFloat64(); return v }
	}},
	{"odd", func(r *rand.Rand) func(int) float64 {
		odd := []uint64{
			0, 1 << 63, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000001, 0x7ff0000000000001, 0xfff800000000beef, 1,
			math.Float64bits(math.MaxFloat64), model.StaleNaN, math.Float64bits(1e15), math.Float64bits(1 << 53), math.Float64bits(0.1),
		}
		return func(int) float64 { return math.Float64frombits(odd[r.IntN(len(odd))]) }
	}},
	{"none-but-nan", func(*rand.Rand) func(int) float64 {
		return func(int) float64 { return math.Float64frombits(0x7ff8000000001234) }
	}},
}

// rhythms are sequences of times.
var rhythms = []struct {
	name string
	next func(r *rand.Rand, at int64) int64
}{
	{"regular", func(_ *rand.Rand, at int64) int64 { return at + int64(time.Second) }},
	{"jitter", func(r *rand.Rand, at int64) int64 {
		return at + int64(time.Second) + r.Int64N(3)*int64(time.Millisecond)
	}},
	{"nanoseconds", func(r *rand.Rand, at int64) int64 { return at + 1 + r.Int64N(int64(time.Second)) }},
	{"gaps", func(r *rand.Rand, at int64) int64 { return at + int64(time.Second)*(1+r.Int64N(20)/19*r.Int64N(500)) }},
}

// lengths are on both sides of the limit of short series.
var lengths = []int{1, 2, 5, 7, 8, 30, 600}

// floats makes a series of every shape, rhythm and length.
func floats(r *rand.Rand, begin int64) []series {
	var out []series
	for _, shape := range shapes {
		for i, rhythm := range rhythms {
			for _, n := range lengths {
				s := series{labels: model.LabelsOf("__name__", "shape_"+shape.name, "instance", fmt.Sprint("host", i),
					"job", rhythm.name, "n", fmt.Sprint(n))}
				next, at := shape.course(r), begin
				if n == 30 && i == 0 { // it begins later, with the end of the sequence of the longest
					at += int64(lengths[len(lengths)-1]-n) * int64(time.Second)
				}
				start := begin - 1 - r.Int64N(1e9)
				for k := range n {
					x := row{at: at, bits: math.Float64bits(next(k))}
					if i == 1 && k%7 != 6 { // counters with start times
						if x.start = start; k%11 == 10 {
							start = at
						}
					}
					s.samples = append(s.samples, x)
					at = rhythm.next(r, at)
				}
				out = append(out, s)
			}
		}
	}
	return out
}

// histograms makes series of integers and floats, of schemas and custom bounds, some with floats between
// them.
func histograms(r *rand.Rand, begin int64) []series {
	var out []series
	for kind := range 12 {
		for _, n := range []int{1, 3, 7, 8, 200} {
			s := series{labels: model.LabelsOf("__name__", "latency", "job", "histograms", "kind", fmt.Sprint(kind), "n", fmt.Sprint(n))}
			h := newHistogram(r, kind)
			for k := range n {
				x := row{at: begin + int64(k)*int64(10*time.Second), kind: model.KindHistogram}
				if kind%3 == 0 {
					x.start = begin - int64(k/50)
				}
				switch {
				case kind > 7 && k%3 == 1:
					x.kind, x.bits = model.KindFloat, math.Float64bits(float64(k)/10)
				case k%61 == 60:
					x.blob = model.AppendHistogram(nil, &model.Histogram{Sum: model.StaleNaN, Float: h.Float})
				default:
					if k%23 == 22 {
						h = newHistogram(r, kind)
					}
					grow(r, h)
					x.blob = model.AppendHistogram(nil, h)
				}
				s.samples = append(s.samples, x)
			}
			out = append(out, s)
		}
	}
	return out
}

func newHistogram(r *rand.Rand, kind int) *model.Histogram {
	h := &model.Histogram{Float: kind%2 == 1, Gauge: kind%4 == 2, Schema: int32(r.IntN(13) - 4), ZeroThreshold: math.Float64bits(1e-128)}
	buckets := func() (spans []model.HistogramSpan, n int) {
		for i := range r.IntN(4) {
			length := r.IntN(6)
			offset := r.IntN(9)
			if i == 0 {
				offset -= 4 // only the first span may begin below 0
			}
			spans = append(spans, model.HistogramSpan{Offset: int32(offset), Length: uint32(length)})
			n += length
		}
		return spans, n
	}
	var p, n int
	h.PositiveSpans, p = buckets()
	if kind%3 == 1 { // custom bounds
		h.Schema, h.ZeroThreshold = -53, 0
		h.PositiveSpans, p = []model.HistogramSpan{{Offset: int32(r.IntN(3)), Length: 5}}, 5
		for i := range 9 {
			h.Custom = append(h.Custom, math.Float64bits(math.Ldexp(0.005, i)))
		}
	} else if kind%5 != 0 {
		h.NegativeSpans, n = buckets()
	}
	h.Positive, h.Negative = make([]uint64, p), make([]uint64, n)
	return h
}

// grow adds observations and adjusts the count.
func grow(r *rand.Rand, h *model.Histogram) {
	h.Sum = math.Float64bits(math.Float64frombits(h.Sum) + float64(r.IntN(100))/8)
	if h.Float {
		count := 0.0
		more := func(to *uint64) {
			v := math.Float64frombits(*to) + float64(r.IntN(3)) + r.Float64()*float64(r.IntN(2))
			count += v
			*to = math.Float64bits(v)
		}
		if h.Schema != -53 {
			more(&h.ZeroCount)
		}
		for _, side := range [][]uint64{h.Positive, h.Negative} {
			for i := range side {
				more(&side[i])
			}
		}
		h.Count = math.Float64bits(count)
		return
	}
	if h.Schema != -53 {
		h.ZeroCount += r.Uint64N(3)
	}
	h.Count = h.ZeroCount
	for _, side := range [][]uint64{h.Positive, h.Negative} {
		var before, was uint64
		for i := range side { // differences to the previous bucket
			was += side[i]
			now := was + r.Uint64N(4)
			side[i], before = now-before, now
			h.Count += now
		}
	}
	h.Count += r.Uint64N(20) / 19 // of NaN
}

// exemplars makes series with and without samples, with several exemplars of one time.
func exemplars(r *rand.Rand, begin int64) []series {
	var out []series
	for i := range 400 {
		s := series{labels: model.LabelsOf("__name__", "requests_total", "job", "exemplars", "i", fmt.Sprint(i))}
		for k := range i % 4 {
			at := begin + int64(k)*int64(time.Minute)
			if i%8 > 3 {
				s.samples = append(s.samples, row{at: at, bits: math.Float64bits(float64(k))})
			}
			for j := range 1 + r.IntN(3) {
				e := model.Exemplar{Value: math.Float64bits(float64(j) / 4), Labels: model.LabelsOf("span_id", fmt.Sprint(r.IntN(9)), "trace_id", fmt.Sprintf("%016x", r.Uint64()))}
				if j == 2 {
					e.Labels = nil
				}
				s.exemplars = append(s.exemplars, row{at: at, kind: model.KindExemplar, blob: model.AppendExemplar(nil, &e)})
			}
		}
		if len(s.samples)+len(s.exemplars) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// names makes label sets of all sorts: Graphite paths, labels without a role in keys, long and odd values.
func names(begin int64) []series {
	var sets []model.Labels
	for _, path := range []string{
		".", "a.", ".a", "a.b", "a.b.c", "a.b.d", "a.b.c.d", "a..b", "servers.web1.cpu.user", "servers.web1.cpu.system",
		"servers.web2.cpu.user", "noDot",
	} {
		sets = append(sets, model.LabelsOf("__name__", path))
	}
	sets = append(sets, model.LabelsOf("__name__", "a.b.c", "job", "j"), model.LabelsOf("job", "j"), model.LabelsOf("instance", "only"),
		model.LabelsOf("x", "\"\\\n\t\x01é🙂<&>"), model.LabelsOf("__name__", "service", "namespace", "n", "cluster", "c"))
	var out []series
	for i, l := range sets {
		out = append(out, series{labels: l, samples: []row{{at: begin - int64(i), bits: math.Float64bits(float64(i))}}})
	}
	return out
}

// logs makes series of the other signal, whose keys use other labels.
func logs(begin int64) []series {
	var out []series
	for i, l := range []model.Labels{
		model.LabelsOf("service_name", "s"), model.LabelsOf("service_name", "s", "namespace", "n"),
		model.LabelsOf("service_name", "s", "cluster", "c"), model.LabelsOf("service_name", "s", "cluster", "c", "namespace", "n"),
		model.LabelsOf("instance", "i", "service_name", "s"), model.LabelsOf("__name__", "a.b.c"), model.LabelsOf("job", "j"),
	} {
		out = append(out, series{labels: l, text: []row{{at: begin + int64(i), kind: model.KindText, blob: model.AppendLine(nil, &model.Line{Text: []byte("line")})}}})
	}
	return out
}

// lines makes streams of lines of several shapes: one stream of that many lines (long), and short ones. From 15,000
// lines on, filters have slices.
func lines(r *rand.Rand, begin int64, long int) []series {
	shapes := []func(t time.Time) string{
		func(t time.Time) string {
			return fmt.Sprintf(`{"ts":%q,"msg":"request completed","trace_id":"%016x%016x","status":%d,"took":%d,"host":"10.%d.%d.7"}`,
				t.UTC().Format("2006-01-02T15:04:05.000Z"), r.Uint64(), r.Uint64(), 200+r.IntN(2)*303, r.IntN(1e6), r.IntN(256), r.IntN(256))
		},
		func(t time.Time) string {
			return fmt.Sprintf("%s pod-%s ID=%012X blk_%d", t.UTC().Format("02/Jan/2006:15:04:05"), fmt.Sprintf("x%dk%dq%d", r.IntN(99), r.IntN(99), r.IntN(99)), r.Uint64()>>16, r.Int64())
		},
		func(time.Time) string {
			return []string{"", "\xff\x00\n\"", "é 🙂", "n=" + fmt.Sprint(r.IntN(9))}[r.IntN(4)]
		},
	}
	var out []series
	for i := range 40 {
		s := series{labels: model.LabelsOf("service_name", fmt.Sprint("app", i%5), "pod", fmt.Sprint(i))}
		n := 1 + r.IntN(30)
		if i == 0 {
			n = long
		}
		at := begin
		for range n {
			l := model.Line{Text: []byte(shapes[i%len(shapes)](time.Unix(0, at)))}
			switch r.IntN(4) {
			case 0:
				l.Metadata = model.LabelsOf("shard", fmt.Sprint(r.IntN(4)), "trace_id", fmt.Sprintf("%032x", r.Uint64()))
			case 1:
				l.Metadata = model.LabelsOf("level", []string{"info", "warn"}[r.IntN(2)])
			}
			s.text = append(s.text, row{at: at, kind: model.KindText, blob: model.AppendLine(nil, &l)})
			at += r.Int64N(3) * r.Int64N(1e9)
		}
		out = append(out, s)
	}
	return out
}

// many makes n series of a row or two, whose label odd is in random order: its lists of ranks are long.
func many(r *rand.Rand, begin int64, n int) []series {
	var out []series
	for i := range n {
		s := series{labels: model.LabelsOf("__name__", "up", "instance", fmt.Sprintf("10.%d.%d.%d:9100", i>>16, i>>8&255, i&255), "job", "node", "odd", fmt.Sprint(r.IntN(2)))}
		s.samples = append(s.samples, row{at: begin + r.Int64N(100)*int64(time.Second), bits: math.Float64bits(float64(r.IntN(2)))})
		if i%9 == 0 {
			s.samples = append(s.samples, row{at: begin + int64(time.Hour), bits: math.Float64bits(float64(i) / 10)})
		}
		out = append(out, s)
	}
	return out
}

// long makes series with labels so long that the entries of index pages are long.
func long(r *rand.Rand, begin int64, n int) []series {
	var out []series
	for range n {
		text := make([]byte, 0, 3000)
		for len(text) < 2500 {
			text = fmt.Appendf(text, "%016x", r.Uint64())
		}
		out = append(out, series{
			labels:  model.LabelsOf("__name__", "info", "path", string(text)),
			samples: []row{{at: begin + r.Int64N(1e12), bits: math.Float64bits(1)}},
		})
	}
	return out
}

// endless makes a series that covers several pages.
func endless(r *rand.Rand, begin int64, n int) series {
	s := series{labels: model.LabelsOf("__name__", "endless", "job", "walk")}
	v := 0.0
	for i := range n {
		v += r.NormFloat64()
		s.samples = append(s.samples, row{at: begin + int64(i)*int64(100*time.Millisecond), bits: math.Float64bits(v)})
	}
	return s
}
