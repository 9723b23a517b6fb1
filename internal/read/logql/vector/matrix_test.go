package vector

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// drawLabels draws labels whose names and values begin with each other, and some of which are long.
func drawLabels(t *rapid.T) model.Labels {
	text := rapid.SampledFrom([]string{"a", "aa", "ab", "b", "a\x00", strings.Repeat("a", 200)})
	var pairs []string
	for name, value := range rapid.MapOfN(text, text, 0, 4).Draw(t, "labels") {
		pairs = append(pairs, name, value)
	}
	return model.LabelsOf(pairs...)
}

func TestCompareLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawLabels(t), drawLabels(t)
		if got, want := CompareLabels(a, b), slices.Compare(flat(a), flat(b)); got != want {
			t.Fatalf("%s and %s: got %d, want %d", a, b, got, want)
		}
	})
}

func flat(l model.Labels) (out []string) {
	for name, value, rest, ok := l.Next(); ok; name, value, rest, ok = rest.Next() {
		out = append(out, string(name), string(value))
	}
	return out
}

func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "steps")
		s := NewSet(n)
		in := map[int]bool{}
		for _, i := range rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, "added") {
			s.Add(i)
			in[i] = true
		}
		for _, i := range rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, "removed") {
			s.Remove(i)
			delete(in, i)
		}
		var all []int
		for i := range s.All() {
			all = append(all, i)
		}
		if s.Len() != len(in) || s.IsEmpty() != (len(in) == 0) || len(all) != len(in) || !slices.IsSorted(all) {
			t.Fatalf("%v: %v", s, in)
		}
		for i := range n {
			if s.Has(i) != in[i] {
				t.Fatalf("%d: %v", i, in)
			}
		}
	})
}

// TestJoinEqual: values keep their labels and steps, and series with equal labels remain only as far as they
// share a step.
func TestJoinEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const steps = 5
		var quota model.Quota
		m := &Matrix{Steps: Steps{Count: steps}}
		want := map[string][]float64{}
		for range rapid.IntRange(0, 6).Draw(t, "series") {
			l := model.LabelsOf("a", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "label"))
			s, err := newSeries(&quota, l, steps)
			if err != nil {
				t.Fatal(err)
			}
			for i := range steps {
				if rapid.Bool().Draw(t, "present") {
					s.Present.Add(i)
					s.Values[i] = rapid.Float64Range(0, 9).Draw(t, "value")
					key := string(l) + string(rune(i))
					want[key] = append(want[key], s.Values[i])
				}
			}
			m.add(&quota, s)
		}
		m.SortByLabels()
		if err := m.JoinEqual(&quota); err != nil {
			t.Fatal(err)
		}
		got := map[string][]float64{}
		most := map[string]int{}
		for _, s := range m.Series {
			if s.Present.IsEmpty() {
				t.Fatal("a series without values")
			}
			most[string(s.Labels)]++
			for i := range s.Present.All() {
				key := string(s.Labels) + string(rune(i))
				got[key] = append(got[key], s.Values[i])
			}
		}
		for key, values := range want {
			if slices.Sort(values); !slices.Equal(values, sorted(got[key])) {
				t.Fatalf("%q: got %v, want %v", key, got[key], values)
			}
		}
		for labels, n := range most {
			shared := 0
			for i := range steps {
				shared = max(shared, len(want[labels+string(rune(i))]))
			}
			if n != shared {
				t.Fatalf("%q: %d series, want %d", labels, n, shared)
			}
		}
		if m.Release(&quota); quota.Charged() != (&model.Quota{}).Charged() {
			t.Fatalf("%+v is still charged", quota.Charged())
		}
	})
}

func sorted[T cmp.Ordered](s []T) []T {
	slices.Sort(s)
	return s
}

// TestQuota: each operation stops with an error of class limit before it makes what the quota does not allow.
func TestQuota(t *testing.T) {
	const steps = 100
	in, err := Constant(new(model.Quota), Steps{Count: steps}, 1)
	if err != nil {
		t.Fatal(err)
	}
	sum := &syntax.VectorAggregation{Op: syntax.Sum}
	top := &syntax.VectorAggregation{Op: syntax.TopK, K: 1}
	two := &syntax.Literal{Value: 2}
	replace, err := syntax.Parse(`label_replace(vector(1), "a", "b", "", "")`)
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(*model.Quota) (*Matrix, error){
		"constant":  func(q *model.Quota) (*Matrix, error) { return Constant(q, in.Steps, 1) },
		"aggregate": func(q *model.Quota) (*Matrix, error) { return Aggregate(t.Context(), q, sum, in) },
		"top":       func(q *model.Quota) (*Matrix, error) { return Aggregate(t.Context(), q, top, in) },
		"number": func(q *model.Quota) (*Matrix, error) {
			return CombineNumber(t.Context(), q, &syntax.BinaryExpr{Op: syntax.OpAdd, Right: two}, in, two)
		},
		"match": func(q *model.Quota) (*Matrix, error) {
			return Combine(t.Context(), q, &syntax.BinaryExpr{Op: syntax.OpAdd}, in, in)
		},
		"and": func(q *model.Quota) (*Matrix, error) {
			return Combine(t.Context(), q, &syntax.BinaryExpr{Op: syntax.OpAnd}, in, in)
		},
		"or": func(q *model.Quota) (*Matrix, error) {
			return Combine(t.Context(), q, &syntax.BinaryExpr{Op: syntax.OpOr}, in, in)
		},
		"labels": func(q *model.Quota) (*Matrix, error) {
			return ReplaceLabels(t.Context(), q, replace.(*syntax.LabelReplace), in)
		},
	} {
		if _, err := run(&model.Quota{MaxBytes: 800}); !errors.Is(err, model.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
		var quota model.Quota
		m, err := run(&quota)
		if err != nil {
			t.Fatal(err)
		}
		if m.Release(&quota); quota.Charged() != (&model.Quota{}).Charged() {
			t.Errorf("%s: %+v is still charged", name, quota.Charged())
		}
	}
}
