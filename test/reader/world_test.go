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
	"github.com/shaledb/shale/internal/model/worldtest"
)

// push pushes a batch, in pieces that fit into the buffers.
func push(e *app.Engine, tenant string, signal model.Signal, all []worldtest.Series) error {
	const piece = 20_000
	for len(all) > 0 {
		n, rows := 0, 0
		for n < len(all) && (n == 0 || rows+len(all[n].Rows) <= piece) {
			rows += len(all[n].Rows)
			n++
		}
		if err := pushPiece(e, &worldtest.Batch{Tenant: tenant, Signal: signal, Series: all[:n]}); err != nil {
			return err
		}
		if all = all[n:]; rows > piece/2 {
			if err := e.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func pushPiece(e *app.Engine, in *worldtest.Batch) error {
	b := e.Path().Batch(in.Tenant, in.Signal)
	defer e.Path().Recycle(b)
	in.AppendTo(b, e.Path().Seed())
	res, err := e.Path().Push(context.Background(), b)
	if err == nil && len(res.Rejected) > 0 {
		err = fmt.Errorf("rejected: %v", res.Rejected)
	}
	return err
}

// lengths are on both sides of the limit of short series.
var lengths = []int{1, 2, 5, 7, 8, 30, 600}

// floats makes a series of every course, clock and length.
func floats(r *rand.Rand, begin int64) []worldtest.Series {
	var out []worldtest.Series
	for _, course := range worldtest.Courses {
		for i, clock := range worldtest.Clocks {
			for _, n := range lengths {
				s := worldtest.Series{Labels: model.LabelsOf("__name__", "shape_"+course.Name, "instance", fmt.Sprint("host", i),
					"job", clock.Name, "n", fmt.Sprint(n))}
				next, at := course.Begin(r), begin
				if n == 30 && i == 0 { // it begins later, with the end of the sequence of the longest
					at += int64(lengths[len(lengths)-1]-n) * int64(time.Second)
				}
				start := begin - 1 - r.Int64N(1e9)
				for k := range n {
					x := worldtest.Float(at, next(k))
					if i == 1 && k%7 != 6 { // counters with start times
						if x.Start = start; k%11 == 10 {
							start = at
						}
					}
					s.Rows = append(s.Rows, x)
					at = clock.Next(r, at)
				}
				out = append(out, s)
			}
		}
	}
	return out
}

// histograms makes series of integers and floats, of schemas and custom bounds, some with floats between
// them.
func histograms(r *rand.Rand, begin int64) []worldtest.Series {
	var out []worldtest.Series
	for kind := range worldtest.HistogramKinds {
		for _, n := range []int{1, 3, 7, 8, 200} {
			s := worldtest.Series{Labels: model.LabelsOf("__name__", "latency", "job", "histograms", "kind", fmt.Sprint(kind), "n", fmt.Sprint(n))}
			h := worldtest.NewHistogram(r, kind)
			for k := range n {
				at := begin + int64(k)*int64(10*time.Second)
				var x worldtest.Row
				switch {
				case kind > 7 && k%3 == 1:
					x = worldtest.Float(at, math.Float64bits(float64(k)/10))
				case k%61 == 60:
					x = worldtest.HistogramRow(at, &model.Histogram{Sum: model.StaleNaN, Float: h.Float})
				default:
					if k%23 == 22 {
						h = worldtest.NewHistogram(r, kind)
					}
					worldtest.Observe(r, h)
					x = worldtest.HistogramRow(at, h)
				}
				if kind%3 == 0 {
					x.Start = begin - int64(k/50)
				}
				s.Rows = append(s.Rows, x)
			}
			out = append(out, s)
		}
	}
	return out
}

// exemplars makes series with and without samples, with several exemplars of one time.
func exemplars(r *rand.Rand, begin int64) []worldtest.Series {
	var out []worldtest.Series
	for i := range 400 {
		s := worldtest.Series{Labels: model.LabelsOf("__name__", "requests_total", "job", "exemplars", "i", fmt.Sprint(i))}
		for k := range i % 4 {
			at := begin + int64(k)*int64(time.Minute)
			if i%8 > 3 {
				s.Rows = append(s.Rows, worldtest.Float(at, math.Float64bits(float64(k))))
			}
			for j := range 1 + r.IntN(3) {
				e := model.Exemplar{Value: math.Float64bits(float64(j) / 4), Labels: model.LabelsOf("span_id", fmt.Sprint(r.IntN(9)), "trace_id", fmt.Sprintf("%016x", r.Uint64()))}
				if j == 2 {
					e.Labels = nil
				}
				s.Rows = append(s.Rows, worldtest.ExemplarRow(at, &e))
			}
		}
		if len(s.Rows) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// odd makes series of odd labels, with a row each.
func odd(signal model.Signal, begin int64) []worldtest.Series {
	var out []worldtest.Series
	for i, l := range worldtest.OddLabels(signal) {
		x := worldtest.Float(begin-int64(i), math.Float64bits(float64(i)))
		if signal == model.Logs {
			x = worldtest.LineRow(begin+int64(i), &model.Line{Text: []byte("line")})
		}
		out = append(out, worldtest.Series{Labels: l, Rows: []worldtest.Row{x}})
	}
	return out
}

// lines makes streams of lines of several shapes: one stream has n lines, and the others are short. Filters
// of 15,000 lines have slices.
func lines(r *rand.Rand, begin int64, n int) []worldtest.Series {
	var out []worldtest.Series
	for i := range 40 {
		s := worldtest.Series{Labels: model.LabelsOf("service_name", fmt.Sprint("app", i%5), "pod", fmt.Sprint(i))}
		shape := worldtest.LineShapes[i%len(worldtest.LineShapes)]
		at := begin
		for range n {
			s.Rows = append(s.Rows, worldtest.LineRow(at, &model.Line{Text: []byte(shape(r, at)), Metadata: worldtest.Metadata(r)}))
			at += r.Int64N(3) * r.Int64N(1e9)
		}
		out = append(out, s)
		n = 1 + r.IntN(30)
	}
	return out
}

// many makes n series of a row or two, whose label odd is in random order: its lists of ranks are long.
func many(r *rand.Rand, begin int64, n int) []worldtest.Series {
	var out []worldtest.Series
	for i := range n {
		s := worldtest.Series{Labels: model.LabelsOf("__name__", "up", "instance", fmt.Sprintf("10.%d.%d.%d:9100", i>>16, i>>8&255, i&255), "job", "node", "odd", fmt.Sprint(r.IntN(2)))}
		s.Rows = append(s.Rows, worldtest.Float(begin+r.Int64N(100)*int64(time.Second), math.Float64bits(float64(r.IntN(2)))))
		if i%9 == 0 {
			s.Rows = append(s.Rows, worldtest.Float(begin+int64(time.Hour), math.Float64bits(float64(i)/10)))
		}
		out = append(out, s)
	}
	return out
}

// long makes series with labels so long that the entries of index pages are long.
func long(r *rand.Rand, begin int64, n int) []worldtest.Series {
	var out []worldtest.Series
	for range n {
		text := make([]byte, 0, 3000)
		for len(text) < 2500 {
			text = fmt.Appendf(text, "%016x", r.Uint64())
		}
		out = append(out, worldtest.Series{
			Labels: model.LabelsOf("__name__", "info", "path", string(text)),
			Rows:   []worldtest.Row{worldtest.Float(begin+r.Int64N(1e12), math.Float64bits(1))},
		})
	}
	return out
}

// endless makes a series that covers several pages.
func endless(r *rand.Rand, begin int64, n int) worldtest.Series {
	s := worldtest.Series{Labels: model.LabelsOf("__name__", "endless", "job", "walk")}
	v := 0.0
	for i := range n {
		v += r.NormFloat64()
		s.Rows = append(s.Rows, worldtest.Float(begin+int64(i)*int64(100*time.Millisecond), math.Float64bits(v)))
	}
	return s
}
