package plan_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/plan"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/syntax/syntaxtest"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// randomMatrix returns a matrix that depends on the seed and the text only. Its labels are among those of the
// generator of queries.
func randomMatrix(seed uint64, text string, steps vector.Steps) *vector.Matrix {
	h := fnv.New64a()
	h.Write([]byte(text))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	m := &vector.Matrix{Steps: steps}
	seen := map[string]bool{}
	for range r.IntN(9) {
		var pairs []string
		for _, name := range []string{"a", "app", "level", "status", "x9"} {
			if r.IntN(5) < 2 {
				pairs = append(pairs, name, []string{"x", "y"}[r.IntN(2)])
			}
		}
		s := vector.Series{Labels: model.LabelsOf(pairs...), Values: make([]float64, steps.Count), Present: vector.NewSet(steps.Count)}
		for i := range s.Values {
			if s.Values[i] = randomValue(r); r.IntN(4) > 0 {
				s.Present.Add(i)
			}
		}
		if !seen[string(s.Labels)] && !s.Present.IsEmpty() {
			seen[string(s.Labels)] = true
			m.Series = append(m.Series, s)
		}
	}
	m.SortByLabels()
	return m
}

func randomValue(r *rand.Rand) float64 {
	rare := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e308, -1e308, 5e-324, 0.1}
	if r.IntN(8) == 0 {
		return rare[r.IntN(len(rare))]
	}
	return float64(r.IntN(7) - 2)
}

// expression returns a random metric query whose stages can be compiled.
func expression(seed uint64) syntax.MetricExpr {
	g := syntaxtest.Generator{R: rand.New(rand.NewPCG(seed, 1))}
	for {
		if e, err := syntax.Parse(g.Query()); err == nil {
			if m, ok := e.(syntax.MetricExpr); ok {
				if _, err := plan.Compile(m); err == nil || isLiteral(err) {
					return m
				}
			}
		}
	}
}

// isLiteral reports whether the only mistake is a number where a vector must be.
func isLiteral(err error) bool {
	return errors.Is(err, model.ErrInvalid) && strings.HasPrefix(err.Error(), "unexpected expr type (*syntax.LiteralExpr)")
}

// TestNaive compares with an evaluation of each step, element by element.
func TestNaive(t *testing.T) {
	values, failures := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		steps := vector.Steps{Start: 1000, Step: 10, Count: rapid.SampledFrom([]int{1, 2, 5, 64, 65}).Draw(t, "steps")}
		v, failed := compare(t, expression(seed), seed, steps, rapid.Bool().Draw(t, "instant"))
		values += v
		if failed {
			failures++
		}
	})
	if !testing.Short() && (values < 1000 || failures == 0) {
		t.Errorf("only %d values and %d failures", values, failures)
	}
}

// addAll adds the series of a matrix to a Top, the last one first.
func addAll(top *vector.Top, m *vector.Matrix) error {
	for _, s := range slices.Backward(m.Series) {
		err := top.Add(s.Labels, func(give func(step int, v float64)) {
			for step := range s.Present.All() {
				give(step, s.Values[step])
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// compare evaluates an expression in both ways. It returns how many values there are, and whether there is an
// error instead.
func compare(t fataler, e syntax.MetricExpr, seed uint64, steps vector.Steps, instant bool) (values int, failed bool) {
	p, err := plan.Compile(e)
	if err != nil {
		if !isLiteral(err) {
			t.Fatalf("%s: %v", e, err)
		}
		return 0, true
	}
	if instant = instant && p.Ordered; instant {
		steps.Count = 1
	}
	leaf := func(l *plan.Leaf) *vector.Matrix {
		return randomMatrix(seed, fmt.Sprint(l.Aggregation, l.Outer != nil), steps)
	}
	quota := &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 40}}
	reads := map[string]int{}
	run := plan.Evaluation{Plan: p, Steps: steps, KeepOrder: instant, Quota: quota, Read: func(_ context.Context, l *plan.Leaf, extent plan.Extent, top *vector.Top) (*vector.Matrix, error) {
		reads[extent.Text]++
		m := leaf(l)
		if top != nil && l.Outer == nil && seed%2 == 0 {
			return nil, addAll(top, m)
		}
		return m, quota.TakeBytes(m.Size())
	}}
	got, err := run.Run(context.Background())
	for text, n := range reads {
		if n > 1 {
			t.Fatalf("%s: %s was read %d times", e, text, n)
		}
	}
	want := make([][]sample, steps.Count)
	for step := range want {
		var wantErr error
		if want[step], wantErr = (naive{p, leaf, step, instant}).evaluate(e); wantErr != nil {
			if err == nil || !errors.Is(err, model.ErrInvalid) {
				t.Fatalf("%s: %v, want %v", e, err, wantErr)
			}
			return 0, true
		}
	}
	if err != nil {
		t.Fatalf("%s: %v", e, err)
	}
	for step := range want {
		var all []string
		for _, s := range got.Series {
			if s.Present.Has(step) {
				all = append(all, fmt.Sprint(s.Labels, s.Values[step]))
			}
		}
		for i, s := range want[step] {
			if text := fmt.Sprint(asLabels(s.labels), s.value); i >= len(all) || all[i] != text {
				t.Fatalf("%s: step %d:\n got %s\nwant %v", e, step, all, want[step])
			}
		}
		if len(all) != len(want[step]) {
			t.Fatalf("%s: step %d:\n got %s\nwant %v", e, step, all, want[step])
		}
		values += len(all)
	}
	if slices.ContainsFunc(got.Series, func(s vector.Series) bool { return s.Present.IsEmpty() }) {
		t.Fatalf("%s: a series without values", e)
	}
	got.Release(quota)
	if quota.Charged() != (&model.Quota{}).Charged() {
		t.Fatalf("%s: %+v is still charged", e, quota.Charged())
	}
	return values, false
}

// FuzzPlan evaluates random expressions, or any text, over random matrices.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, "")
	}
	f.Add(uint64(1), `sum(count_over_time({app="x"}[1m])) / on () group_left (a) topk by (a) (2, rate({a="b"}[1m]))`)
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		e := expression(seed)
		if parsed, err := syntax.Parse(text); err == nil {
			if m, ok := parsed.(syntax.MetricExpr); ok {
				if _, err := plan.Compile(m); err == nil || isLiteral(err) {
					e = m
				} else if !errors.Is(err, model.ErrInvalid) && !errors.Is(err, model.ErrLimit) {
					t.Fatalf("%s: %v", m, err)
				}
			}
		}
		compare(t, e, seed, vector.Steps{Count: int(1 + seed%70)}, seed%3 == 0)
	})
}

// TestPicked: the first series of a leaf come without a matrix of all of them, and in the order of labels.
func TestPicked(t *testing.T) {
	for _, text := range []string{
		`topk(2, rate({a="b"}[1m]))`, `bottomk(9, sum by (s) (rate({a="b"}[1m])))`, `topk(2, rate({a="b"}[1m])) + topk(2, rate({a="b"}[1m]))`,
		`topk by (s) (2, rate({a="b"}[1m]))`, `topk(2, sum by (s) (rate({a="b"}[1m]) * 2))`, `topk(1, rate({a="b"}[1m])) or rate({a="b"}[1m])`,
	} {
		e, err := syntax.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Compile(e.(syntax.MetricExpr))
		if err != nil {
			t.Fatal(err)
		}
		quota := &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 40}}
		var results []string
		for _, picks := range []bool{true, false} {
			run := plan.Evaluation{Plan: p, Steps: vector.Steps{Count: 1}, Quota: quota, Read: func(_ context.Context, _ *plan.Leaf, extent plan.Extent, top *vector.Top) (*vector.Matrix, error) {
				m := &vector.Matrix{Steps: extent.Steps}
				for i, v := range []float64{1, 3, 2} {
					m.Series = append(m.Series, vector.Series{Labels: model.LabelsOf("s", fmt.Sprint(i)), Values: []float64{v}, Present: vector.Set{1}})
				}
				if top != nil && picks {
					return nil, addAll(top, m)
				}
				return m, quota.TakeBytes(m.Size())
			}}
			m, err := run.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			result := ""
			for _, s := range m.Series {
				result += fmt.Sprint(s.Labels, s.Values, s.Present)
			}
			results = append(results, result)
			m.Release(quota)
		}
		if results[0] != results[1] {
			t.Errorf("%s: %s if series are picked, %s if not", text, results[0], results[1])
		}
		if used := quota.Charged().Bytes(); used != 0 {
			t.Errorf("%s: %d bytes stay charged", text, used)
		}
	}
}
