package promql

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/model"
)

// benchWindows returns the windows of a function over 5 minutes, in 360 steps of a minute.
func benchWindows(b *testing.B, function string) *windows {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(function + "(m_total[5m])")
	if err != nil {
		b.Fatal(err)
	}
	start := time.UnixMilli(0)
	r := &replacer{engine: &Engine{}, grid: gridOf(&parser.EvalStmt{Start: start, End: start.Add(6 * time.Hour), Interval: time.Minute})}
	n := r.nodeOf(expr)
	if n == nil {
		b.Fatalf("%s is not computed here", function)
	}
	return newWindows(n, new(model.Quota))
}

// benchCounter returns 6 hours of a counter every 15 s with some resets.
func benchCounter(offset time.Duration) *model.Rows {
	rows := new(model.Rows)
	v := 0.0
	for i := range int64(6 * 240) {
		if v += float64(i % 7); i%500 == 499 {
			v = 0
		}
		rows.Append(int64(offset)+i*int64(15*time.Second), math.Float64bits(v), 0)
	}
	return rows
}

// benchCompute computes series of the counters in turn. A series is an operation.
func benchCompute(b *testing.B, name, function string, compute func(*windows, *model.Rows), counters ...*model.Rows) {
	b.Run(name, func(b *testing.B) {
		w := benchWindows(b, function)
		defer w.release()
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			compute(w, counters[i%len(counters)])
			i++
		}
		if len(w.values) < 300 {
			b.Fatalf("got %d values", len(w.values))
		}
	})
}

func computeHere(w *windows, rows *model.Rows) {
	if err := w.compute(rows, 0); err != nil {
		panic(err)
	}
}

func computeUpstream(w *windows, rows *model.Rows) {
	w.at, w.values = w.at[:0], w.values[:0]
	w.times, w.bits = w.clean(rows.Times, rows.Values)
	w.callUpstream()
}

// BenchmarkRate computes the rate of counters that share their times, of counters that do not, and with
// upstream's implementation.
func BenchmarkRate(b *testing.B) {
	one, other := benchCounter(0), benchCounter(time.Second)
	benchCompute(b, "equal-times", "rate", computeHere, one)
	benchCompute(b, "different-times", "rate", computeHere, one, other)
	benchCompute(b, "upstream", "rate", computeUpstream, one)
}

// BenchmarkOverTime computes functions of the values alone, here and with upstream's implementation.
func BenchmarkOverTime(b *testing.B) {
	for _, f := range []string{"avg_over_time", "max_over_time"} {
		benchCompute(b, fmt.Sprint(f, "/here"), f, computeHere, benchCounter(0))
		benchCompute(b, fmt.Sprint(f, "/upstream"), f, computeUpstream, benchCounter(0))
	}
}
