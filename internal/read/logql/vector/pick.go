package vector

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/heap"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// pick carries out topk, bottomk and the sorts: at each step it keeps the first K series of each group, or
// all. At a single step it also orders them, group by group. NaN comes last, and equal values go by labels.
func pick(ctx context.Context, quota *model.Quota, e *syntax.VectorAggregation, in *Matrix) (*Matrix, error) {
	numbers := groups(&e.Grouping)
	groupOf := numbers.add(in)
	members := make([][]int32, len(numbers.labels))
	for i, g := range groupOf {
		members[g] = append(members[g], int32(i))
	}
	p := picker{in: in, ranks: ranks(in), ascending: e.Op == syntax.BottomK || e.Op == syntax.Sort}
	out := &Matrix{Steps: in.Steps}
	for _, series := range members {
		present := make([]Set, len(series))
		if k := e.K; k == 0 || k >= len(series) {
			for i, s := range series {
				present[i] = in.Series[s].Present
			}
		} else if err := p.choose(ctx, series, k, present); err != nil {
			return nil, err
		}
		from := len(out.Series)
		for i, s := range series {
			if present[i] == nil {
				continue
			}
			if err := quota.TakeBytes(SeriesSize(in.Series[s].Labels, in.Steps.Count)); err != nil {
				return nil, err
			}
			out.Series = append(out.Series, Series{Labels: in.Series[s].Labels, Values: in.Series[s].Values, Present: present[i]})
		}
		if in.Steps.Count == 1 {
			p.order(out.Series[from:])
		}
	}
	return out, nil
}

// ranks returns the number of each series in the order of labels.
func ranks(in *Matrix) []int32 {
	order := make([]int32, len(in.Series))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return CompareLabels(in.Series[a].Labels, in.Series[b].Labels) })
	ranks := make([]int32, len(order))
	for rank, i := range order {
		ranks[i] = int32(rank)
	}
	return ranks
}

// picker compares series by their values.
type picker struct {
	in        *Matrix
	ranks     []int32
	ascending bool // the smallest value comes first
	kept      heap.Heap[int64, int32]
}

// choose sets for each series the steps at which it is among the first k. Series that never are stay nil.
func (p *picker) choose(ctx context.Context, series []int32, k int, present []Set) error {
	for step := range p.in.Steps.Count {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, s := range series {
			if !p.in.Series[s].Present.Has(step) {
				continue
			}
			item := heap.Item[int64, int32]{Key: p.key(p.in.Series[s].Values[step]), Tie: -p.ranks[s], Index: i}
			if p.kept.Len() < k {
				p.kept.Push(item)
				continue
			}
			if last := p.kept.First(); item.Key > last.Key || item.Key == last.Key && item.Tie > last.Tie {
				p.kept.ReplaceFirst(item)
			}
		}
		for p.kept.Len() > 0 {
			i := p.kept.Pop().Index
			if present[i] == nil {
				present[i] = NewSet(p.in.Steps.Count)
			}
			present[i].Add(step)
		}
	}
	return nil
}

// key returns a number that is the greater, the sooner a value is kept.
func (p *picker) key(v float64) int64 {
	if math.IsNaN(v) {
		return math.MinInt64
	}
	if p.ascending {
		v = -v
	}
	bits := int64(math.Float64bits(v + 0)) // -0 + 0 is 0
	if bits < 0 {
		bits ^= math.MaxInt64
	}
	return bits
}

// order sorts series by their values at the only step.
func (p *picker) order(series []Series) {
	slices.SortStableFunc(series, func(a, b Series) int {
		if c := cmp.Compare(p.key(b.Values[0]), p.key(a.Values[0])); c != 0 {
			return c
		}
		return CompareLabels(a.Labels, b.Labels)
	})
}
