package vector

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Top carries out topk or bottomk without groups over series that come one by one, in any order. It keeps
// only series that are among the first K at some step, so that the others need no matrix. The result is that
// of [Aggregate].
type Top struct {
	quota *model.Quota
	steps Steps
	picker
	k int

	// kept are the series of each step, in a heap whose first item is the next one to go.
	kept [][]topItem
	// Of the series that is added: where it has values, and itself once a step keeps it.
	points  []topPoint
	collect func(step int, v float64)
	charged int64 // for items
}

type topItem struct {
	key    int64 // of picker
	series *topSeries
}

type topSeries struct {
	Series
	kept int // at how many steps
}

type topPoint struct {
	step int
	v    float64
}

const topItemBytes = 32

// NewTop returns a Top for an aggregation, or nil if it is another one.
func NewTop(quota *model.Quota, e *syntax.VectorAggregation, steps Steps) *Top {
	switch e.Op {
	case syntax.TopK, syntax.ApproxTopK, syntax.BottomK:
	default:
		return nil
	}
	if len(e.Grouping.Labels) > 0 || e.Grouping.Without || e.K < 1 {
		return nil
	}
	t := &Top{quota: quota, steps: steps, k: e.K, kept: make([][]topItem, steps.Count)}
	t.ascending = e.Op == syntax.BottomK
	t.collect = func(step int, v float64) { t.points = append(t.points, topPoint{step, v}) }
	return t
}

// Add adds a series, whose values are handed over by a function. It keeps none of the bytes of the labels.
func (t *Top) Add(labels model.Labels, values func(give func(step int, v float64))) error {
	t.points = t.points[:0]
	values(t.collect)
	var s *topSeries
	for _, p := range t.points {
		h, key := t.kept[p.step], t.key(p.v)
		if len(h) == t.k && !before(key, labels, &h[0]) {
			continue
		}
		if s == nil {
			own, err := newSeries(t.quota, model.Labels(string(labels)), t.steps.Count)
			if err != nil {
				return err
			}
			s = &topSeries{Series: own}
		}
		s.Values[p.step] = p.v
		s.Present.Add(p.step)
		s.kept++
		if err := t.keep(p.step, topItem{key, s}); err != nil {
			return err
		}
	}
	return nil
}

// before reports whether a value of a series with these labels comes before an item.
func before(key int64, labels model.Labels, x *topItem) bool {
	return key > x.key || key == x.key && CompareLabels(labels, x.series.Labels) < 0
}

// keep puts an item into the heap of a step, if that is full in the place of the last one.
func (t *Top) keep(step int, x topItem) error {
	h := t.kept[step]
	if len(h) < t.k {
		if err := t.quota.TakeBytes(topItemBytes); err != nil {
			t.drop(x.series, step)
			return err
		}
		t.charged += topItemBytes
		h = append(h, x)
		t.kept[step] = h
		for i := len(h) - 1; i > 0; {
			parent := (i - 1) / 2
			if !before(h[parent].key, h[parent].series.Labels, &h[i]) {
				break
			}
			h[parent], h[i] = h[i], h[parent]
			i = parent
		}
		return nil
	}
	t.drop(h[0].series, step)
	h[0] = x
	for i := 0; ; {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if before(h[last].key, h[last].series.Labels, &h[child]) {
				last = child
			}
		}
		if last == i {
			return nil
		}
		h[i], h[last] = h[last], h[i]
		i = last
	}
}

// drop takes a step away from a series, which is given up with its last one.
func (t *Top) drop(s *topSeries, step int) {
	s.Present.Remove(step)
	if s.kept--; s.kept == 0 {
		_ = t.quota.TakeBytes(-SeriesSize(s.Labels, t.steps.Count)) // giving back does not fail
	}
}

// Matrix returns the result. At a single step series are in the order of their values, else in that of their
// labels. The Top must not be used any more.
func (t *Top) Matrix() *Matrix {
	out := &Matrix{Steps: t.steps}
	for step, h := range t.kept {
		for _, x := range h {
			if first := firstStep(x.series.Present); first == step {
				out.Series = append(out.Series, x.series.Series)
			}
		}
	}
	t.forget()
	if t.steps.Count == 1 {
		t.order(out.Series)
	} else {
		out.SortByLabels()
	}
	return out
}

func firstStep(s Set) int {
	for step := range s.All() {
		return step
	}
	return -1
}

// Release gives up what has been added.
func (t *Top) Release() { t.Matrix().Release(t.quota) }

func (t *Top) forget() {
	_ = t.quota.TakeBytes(-t.charged) // giving back does not fail
	t.kept, t.charged = nil, 0
}
