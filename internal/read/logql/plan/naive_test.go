package plan_test

import (
	"cmp"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/plan"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// sample is an element of a vector at one step.
type sample struct {
	labels map[string]string
	value  float64
}

// naive evaluates an expression at one step, element by element.
type naive struct {
	plan      *plan.Plan
	leaf      func(*plan.Leaf) *vector.Matrix
	step      int
	keepOrder bool
}

func (n naive) evaluate(e syntax.MetricExpr) ([]sample, error) {
	out, err := n.unordered(e)
	if !n.keepOrder {
		slices.SortStableFunc(out, byLabels)
	}
	return out, err
}

func byLabels(a, b sample) int { return vector.CompareLabels(asLabels(a.labels), asLabels(b.labels)) }

func asLabels(m map[string]string) model.Labels {
	var pairs []string
	for name, value := range m {
		pairs = append(pairs, name, value)
	}
	return model.LabelsOf(pairs...)
}

func (n naive) unordered(e syntax.MetricExpr) ([]sample, error) {
	switch e := e.(type) {
	case *syntax.RangeAggregation:
		return n.read(e, nil), nil
	case *syntax.Vector:
		return []sample{{map[string]string{}, e.Value}}, nil
	case *syntax.Literal:
		return []sample{{map[string]string{}, e.Value}}, nil
	case *syntax.VectorAggregation:
		in, err := n.operand(e)
		if err != nil {
			return nil, err
		}
		return aggregate(e, in), nil
	case *syntax.LabelReplace:
		in, err := n.evaluate(e.Expr)
		if err != nil {
			return nil, err
		}
		return replace(e, in), nil
	case *syntax.BinaryExpr:
		right, err := n.evaluate(e.Right)
		if err != nil {
			return nil, err
		}
		left, err := n.evaluate(e.Left)
		if err != nil {
			return nil, err
		}
		return combine(e, left, right)
	}
	panic("no case")
}

// operand evaluates the operand of an aggregation, which a leaf may have grouped already.
func (n naive) operand(e *syntax.VectorAggregation) ([]sample, error) {
	if leaf, ok := e.Expr.(*syntax.RangeAggregation); ok && e.Op == syntax.Sum {
		return n.read(leaf, &e.Grouping), nil
	}
	return n.evaluate(e.Expr)
}

// read returns the elements of the leaf with that text, grouped or not.
func (n naive) read(e *syntax.RangeAggregation, outer *syntax.Grouping) (out []sample) {
	for _, leaf := range n.plan.Leaves {
		grouped := leaf.Outer != nil && outer != nil && leaf.Outer.String() == outer.String()
		if leaf.Aggregation.String() != e.String() || leaf.Outer != nil && !grouped {
			continue
		}
		out = out[:0]
		for _, s := range n.leaf(leaf).Series {
			if s.Present.Has(n.step) {
				out = append(out, sample{asMap(s.Labels), s.Values[n.step]})
			}
		}
		if grouped {
			break
		}
	}
	return out
}

func asMap(l model.Labels) map[string]string {
	m := map[string]string{}
	for name, value, rest, ok := l.Next(); ok; name, value, rest, ok = rest.Next() {
		m[string(name)] = string(value)
	}
	return m
}

// only returns the labels that are listed, or those that are not.
func only(m map[string]string, names []string, listed bool) map[string]string {
	out := map[string]string{}
	for name, value := range m {
		if slices.Contains(names, name) == listed {
			out[name] = value
		}
	}
	return out
}

func aggregate(e *syntax.VectorAggregation, in []sample) (out []sample) {
	groups := map[string][]sample{}
	var keys []string
	for _, s := range in {
		labels := only(s.labels, append([]string{}, e.Grouping.Labels...), !e.Grouping.Without)
		key := string(asLabels(labels))
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], s)
	}
	for _, key := range keys {
		members := groups[key]
		switch e.Op {
		case syntax.TopK, syntax.ApproxTopK, syntax.SortDesc:
			out = append(out, first(e.K, members, func(v float64) float64 { return -v })...)
		case syntax.BottomK, syntax.Sort:
			out = append(out, first(e.K, members, func(v float64) float64 { return v })...)
		default:
			out = append(out, sample{asMap(model.Labels(key)), number(e.Op, members)})
		}
	}
	return out
}

func first(k int, members []sample, key func(float64) float64) []sample {
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b sample) int {
		if math.IsNaN(a.value) != math.IsNaN(b.value) {
			if math.IsNaN(a.value) {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(key(a.value), key(b.value)), byLabels(a, b))
	})
	if k > 0 {
		sorted = sorted[:min(k, len(sorted))]
	}
	return sorted
}

func number(op syntax.VectorOp, members []sample) float64 {
	value, mean, squares := members[0].value, members[0].value, 0.0
	for i, s := range members[1:] {
		n := float64(i + 2)
		switch op {
		case syntax.Sum:
			value += s.value
		case syntax.Max:
			if value < s.value || math.IsNaN(value) {
				value = s.value
			}
		case syntax.Min:
			if value > s.value || math.IsNaN(value) {
				value = s.value
			}
		}
		delta := s.value - mean
		mean += delta / n
		squares += delta * (s.value - mean)
	}
	switch n := float64(len(members)); op {
	case syntax.Avg:
		return mean
	case syntax.Count:
		return n
	case syntax.Stdvar:
		return squares / n
	case syntax.Stddev:
		return math.Sqrt(squares / n)
	}
	return value
}

func replace(e *syntax.LabelReplace, in []sample) (out []sample) {
	re := regexp.MustCompile("^(?:" + e.Pattern + ")$")
	for _, s := range in {
		src := s.labels[e.Src]
		if at := re.FindStringSubmatchIndex(src); at != nil {
			s.labels = only(s.labels, []string{e.Dst}, false)
			if value := string(re.ExpandString(nil, e.Replacement, src, at)); value != "" {
				s.labels[e.Dst] = value
			}
		}
		out = append(out, s)
	}
	return out
}

func combine(e *syntax.BinaryExpr, left, right []sample) (out []sample, err error) {
	_, leftNumber := e.Left.(*syntax.Literal)
	_, rightNumber := e.Right.(*syntax.Literal)
	signature := func(s sample) string { return string(asLabels(only(s.labels, e.Matching.Labels, e.Matching.On))) }
	has := func(in []sample, s sample) bool {
		return slices.ContainsFunc(in, func(other sample) bool { return signature(other) == signature(s) })
	}
	switch {
	case leftNumber:
		for _, s := range right {
			out = appendResult(out, e, s.labels, left[0].value, s.value, s.value)
		}
	case rightNumber:
		for _, s := range left {
			out = appendResult(out, e, s.labels, s.value, right[0].value, s.value)
		}
	case e.Op == syntax.OpAnd, e.Op == syntax.OpUnless:
		for _, s := range left {
			if has(right, s) == (e.Op == syntax.OpAnd) {
				out = append(out, s)
			}
		}
	case e.Op == syntax.OpOr:
		out = slices.Clone(left)
		for _, s := range right {
			if !has(left, s) {
				out = append(out, s)
			}
		}
	default:
		return match(e, left, right, signature)
	}
	return out, nil
}

func appendResult(out []sample, e *syntax.BinaryExpr, labels map[string]string, left, right, kept float64) []sample {
	value := syntax.Calculate(e.Op, left, right)
	if strings.ContainsAny(string(e.Op), "=<>") && !e.Bool {
		if value == 0 {
			return out
		}
		value = kept
	}
	return append(out, sample{labels, value})
}

func match(e *syntax.BinaryExpr, left, right []sample, signature func(sample) string) (out []sample, err error) {
	many, one := left, right
	if e.Matching.Card == syntax.OneToMany {
		many, one = right, left
	}
	ones := map[string]sample{}
	for _, s := range one {
		if _, ok := ones[signature(s)]; ok {
			return nil, errors.New("found duplicate series")
		}
		ones[signature(s)] = s
	}
	seen := map[string]bool{}
	for _, s := range many {
		o, ok := ones[signature(s)]
		if !ok {
			continue
		}
		labels := s.labels
		if e.Matching.Card == syntax.OneToOne {
			labels = only(labels, e.Matching.Labels, e.Matching.On)
		} else {
			labels = only(labels, e.Matching.Include, false)
			for _, name := range e.Matching.Include {
				if value := o.labels[name]; value != "" {
					labels[name] = value
				}
			}
		}
		key := string(asLabels(labels))
		if seen[key] {
			return nil, errors.New("multiple matches for labels")
		}
		seen[key] = true
		l, r := s.value, o.value
		if e.Matching.Card == syntax.OneToMany {
			l, r = r, l
		}
		out = appendResult(out, e, labels, l, r, l)
	}
	return out, nil
}
