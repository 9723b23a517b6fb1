package plan_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/plan"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// part returns the values of a matrix at some of its steps.
func part(m *vector.Matrix, steps vector.Steps, from int) *vector.Matrix {
	out := &vector.Matrix{Steps: steps}
	for _, s := range m.Series {
		p := vector.Series{Labels: s.Labels, Values: s.Values[from : from+steps.Count], Present: vector.NewSet(steps.Count)}
		for i := range steps.Count {
			if s.Present.Has(from + i) {
				p.Present.Add(i)
			}
		}
		if !p.Present.IsEmpty() {
			out.Series = append(out.Series, p)
		}
	}
	return out
}

// TestPieces compares the value of an expression with those of pieces of the steps, one after the other.
func TestPieces(t *testing.T) {
	twice := 0
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		all := vector.Steps{Start: 1000, Step: 10, Count: rapid.SampledFrom([]int{2, 5, 64, 65}).Draw(t, "steps")}
		e := expression(seed)
		if rapid.Bool().Draw(t, "replace a label") {
			e = &syntax.LabelReplace{Expr: e, Dst: rapid.SampledFrom([]string{"a", "app"}).Draw(t, "label"), Replacement: "z", Src: "none"}
			parsed, err := syntax.Parse(e.String())
			if err != nil {
				t.Fatal(e, err)
			}
			e = parsed.(syntax.MetricExpr)
		}
		p, err := plan.Compile(e)
		if err != nil {
			return
		}
		quota := &model.Quota{}
		run := func(steps vector.Steps, from int) (*vector.Matrix, error) {
			run := plan.Evaluation{Plan: p, Steps: steps, Quota: quota, Read: func(_ context.Context, l *plan.Leaf, _ plan.Extent, _ *vector.Top) (*vector.Matrix, error) {
				m := part(randomMatrix(seed, fmt.Sprint(l.Aggregation, l.Outer != nil), all), steps, from)
				return m, quota.TakeBytes(m.Size())
			}}
			return run.Run(context.Background())
		}
		whole, err := run(all, 0)
		if err == nil {
			err = whole.JoinEqual(quota)
		}
		joined := vector.NewJoined(all)
		var pieceErr error
		for from := 0; from < all.Count && pieceErr == nil; {
			steps := all.Part(from, min(rapid.IntRange(1, all.Count).Draw(t, "piece"), all.Count-from))
			var m *vector.Matrix
			if m, pieceErr = run(steps, from); pieceErr == nil {
				pieceErr = joined.Add(quota, m, from)
			}
			from += steps.Count
		}
		if (err == nil) != (pieceErr == nil) {
			t.Fatalf("%s: %v, in pieces %v", e, err, pieceErr)
		}
		if err != nil {
			return
		}
		got := joined.Matrix()
		if got.Steps != whole.Steps || len(got.Series) != len(whole.Series) {
			t.Fatalf("%s: %d series, should be %d", e, len(got.Series), len(whole.Series))
		}
		for i, s := range whole.Series {
			o := got.Series[i]
			if string(o.Labels) != string(s.Labels) {
				t.Fatalf("%s: series %d is %s, should be %s", e, i, o.Labels, s.Labels)
			}
			if i > 0 && string(whole.Series[i-1].Labels) == string(s.Labels) {
				twice++
			}
			for step := range all.Count {
				if o.Present.Has(step) != s.Present.Has(step) || s.Present.Has(step) && math.Float64bits(o.Values[step]) != math.Float64bits(s.Values[step]) {
					t.Fatalf("%s: %s at step %d: %v %v, should be %v %v", e, s.Labels, step, o.Present.Has(step), o.Values[step], s.Present.Has(step), s.Values[step])
				}
			}
		}
	})
	if !testing.Short() && twice == 0 {
		t.Error("no two series had the same labels")
	}
}
