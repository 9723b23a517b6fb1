package vector

import (
	"context"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// TestTop compares with an aggregation of all series at once.
func TestTop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &syntax.VectorAggregation{
			Op: rapid.SampledFrom([]syntax.VectorOp{syntax.TopK, syntax.BottomK, syntax.ApproxTopK}).Draw(t, "op"), K: rapid.IntRange(1, 6).Draw(t, "k"),
		}
		steps := Steps{Step: 1, Count: rapid.IntRange(1, 100).Draw(t, "steps")}
		in := &Matrix{Steps: steps}
		value := rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, 2, -1, math.NaN(), math.Inf(1), math.Inf(-1)})
		for i := range rapid.IntRange(0, 30).Draw(t, "series") {
			s := Series{Labels: model.LabelsOf("s", fmt.Sprint(i)), Values: make([]float64, steps.Count), Present: NewSet(steps.Count)}
			for range rapid.IntRange(1, 10).Draw(t, "values") {
				step := rapid.IntRange(0, steps.Count-1).Draw(t, "step")
				s.Values[step] = value.Draw(t, "value")
				s.Present.Add(step)
			}
			in.Series = append(in.Series, s)
		}
		in.SortByLabels()
		want, err := Aggregate(context.Background(), new(model.Quota), e, in)
		if err != nil {
			t.Fatal(err)
		}
		quota := new(model.Quota)
		top := NewTop(quota, e, steps)
		for _, s := range rapid.Permutation(in.Series).Draw(t, "order") {
			if err := top.Add(s.Labels, s.give); err != nil {
				t.Fatal(err)
			}
		}
		got := top.Matrix()
		if a, b := written(got), written(want); a != b {
			t.Fatalf("%v\nwant %v", a, b)
		}
		if used := quota.Charged().Bytes(); used != got.Size() {
			t.Fatalf("%d bytes are charged for a result of %d", used, got.Size())
		}
	})
}

func (s *Series) give(give func(step int, v float64)) {
	for step := range s.Present.All() {
		give(step, s.Values[step])
	}
}

func written(m *Matrix) (out string) {
	for i := range m.Series {
		s := &m.Series[i]
		out += s.Labels.String()
		s.give(func(step int, v float64) { out += fmt.Sprintf(" %d:%v", step, v) })
		out += "\n"
	}
	return out
}

// TestTopIsCharged for what it keeps, and refuses what is too much.
func TestTopIsCharged(t *testing.T) {
	e := &syntax.VectorAggregation{Op: syntax.TopK, K: 1000}
	quota := &model.Quota{MaxBytes: 64 << 10}
	top := NewTop(quota, e, Steps{Step: 1, Count: 100})
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		err = top.Add(model.LabelsOf("s", fmt.Sprint(i)), func(give func(int, float64)) {
			for step := range 100 {
				give(step, float64(i))
			}
		})
	}
	if err == nil {
		t.Error("more is kept than the quota allows")
	}
	top.Release()
	if used := quota.Charged().Bytes(); used != 0 {
		t.Errorf("%d bytes stay charged", used)
	}
}

// TestNotTop leaves other aggregations alone.
func TestNotTop(t *testing.T) {
	for _, e := range []*syntax.VectorAggregation{
		{Op: syntax.Sum}, {Op: syntax.Sort}, {Op: syntax.TopK, K: 1, Grouping: syntax.Grouping{Labels: []string{"a"}}},
		{Op: syntax.TopK, K: 1, Grouping: syntax.Grouping{Without: true}},
	} {
		if NewTop(new(model.Quota), e, Steps{Count: 1}) != nil {
			t.Errorf("%+v is a Top", e)
		}
	}
}
