package vector

import (
	"context"
	"fmt"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// fleet returns a matrix of series with labels like those of a fleet, and a value at each step.
func fleet(series, steps int) *Matrix {
	m := &Matrix{Steps: Steps{Step: 1, Count: steps}}
	for i := range series {
		s := Series{
			Labels: model.LabelsOf("app", fmt.Sprint("app-", i%20), "level", fmt.Sprint(i%4), "pod", fmt.Sprint("pod-", i)),
			Values: make([]float64, steps), Present: NewSet(steps),
		}
		for step := range s.Values {
			s.Values[step] = float64((i*7919 + step*31) % 1000)
			s.Present.Add(step)
		}
		m.Series = append(m.Series, s)
	}
	m.SortByLabels()
	return m
}

var background = context.Background()

// operations are those that benchmarks and budgets are for.
var operations = []struct {
	name string
	// perSeries is how many allocations a series of the operand may cost.
	perSeries float64
	run       func(*model.Quota, *Matrix) (*Matrix, error)
}{
	{"sum", 0.2, aggregates(&syntax.VectorAggregation{Op: syntax.Sum, Grouping: syntax.Grouping{Labels: []string{"app"}}})},
	{"stddev", 0.3, aggregates(&syntax.VectorAggregation{Op: syntax.Stddev, Grouping: syntax.Grouping{Labels: []string{"app"}}})},
	{"topk", 1.3, aggregates(&syntax.VectorAggregation{Op: syntax.TopK, K: 10})},
	{"number", 2.2, func(q *model.Quota, in *Matrix) (*Matrix, error) {
		two := &syntax.Literal{Value: 2}
		return CombineNumber(background, q, &syntax.BinaryExpr{Op: syntax.OpMul, Right: two}, in, two)
	}},
	{"match", 9, func(q *model.Quota, in *Matrix) (*Matrix, error) {
		return Combine(background, q, &syntax.BinaryExpr{Op: syntax.OpDiv}, in, in)
	}},
}

func aggregates(e *syntax.VectorAggregation) func(*model.Quota, *Matrix) (*Matrix, error) {
	return func(q *model.Quota, in *Matrix) (*Matrix, error) { return Aggregate(background, q, e, in) }
}

// BenchmarkOperations combines 10,000 series of 360 steps.
func BenchmarkOperations(b *testing.B) {
	in := fleet(10_000, 360)
	for _, o := range operations {
		b.Run(o.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := o.run(new(model.Quota), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAllocations: allocations follow the groups and series of the result, and never the steps.
func TestAllocations(t *testing.T) {
	const series = 1000
	for _, o := range operations {
		few, many := 0.0, 0.0
		for _, c := range []struct {
			steps int
			n     *float64
		}{{64, &few}, {640, &many}} {
			in := fleet(series, c.steps)
			*c.n = testing.AllocsPerRun(3, func() {
				if _, err := o.run(new(model.Quota), in); err != nil {
					t.Fatal(err)
				}
			})
		}
		if few > o.perSeries*series || many > o.perSeries*series+series/2 {
			t.Errorf("%s: %v allocations at 64 steps and %v at 640, for %d series", o.name, few, many, series)
		}
	}
}
