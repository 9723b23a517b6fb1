package promql

import (
	"errors"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/kahansum"

	"github.com/shaledb/shale/internal/model"
)

// histogramCell is what a sum or an average of histograms adds to a cell. Everything is done in upstream's
// order and with its functions, so that results are equal bit for bit.
type histogramCell struct {
	sum, rest *histogram.FloatHistogram // rest is the rounding error; nil: none yet
	mean      *histogram.FloatHistogram // set once the sum of an average has overflowed

	hasFloat, hasHistogram bool
	incompatible           bool // histograms that cannot be added up; later values do not count
	reset, noReset         bool // reset hints that were seen
	ownBounds              bool // bounds of custom buckets are not those of another cell

	held int64 // bytes of the histograms
}

const histogramCellBytes = 40

// size returns the memory that the histograms of the cell hold. The rest shares its bounds with the value.
func (c *histogramCell) size() int64 {
	size := sizeOf(c.sum) + sizeOf(c.rest) + sizeOf(c.mean)
	if c.ownBounds {
		size += 8 * int64(cap(c.sum.CustomValues))
		if c.mean != nil {
			size += 8 * int64(cap(c.mean.CustomValues))
		}
	}
	return size
}

// addMixed adds values at some steps to a group: the histogram, or the float if that is nil. Owned says that
// the group may keep and change the histograms.
func (a *aggregation) addMixed(g *group, r *result, l model.Labels, owned bool) error {
	if len(g.histograms) == 0 && a.addsHistograms() {
		if err := a.quota.TakeBytes(histogramCellBytes * int64(len(g.cells))); err != nil {
			return err
		}
		g.histograms = make([]histogramCell, len(g.cells))
		for i := range g.cells {
			g.histograms[i].hasFloat = g.cells[i].count > 0
		}
	}
	for i, h := range r.histograms {
		step := int(r.at[i])
		switch {
		case h == nil:
			a.add(g, r.at[i:i+1], r.values[i:i+1])
		case a.aggregate.Op == parser.MIN:
			a.notes.Add(annotations.NewHistogramIgnoredInAggregationInfo("min", a.aggregate.Expr.PositionRange()))
		case a.aggregate.Op == parser.MAX:
			a.notes.Add(annotations.NewHistogramIgnoredInAggregationInfo("max", a.aggregate.Expr.PositionRange()))
		case a.addsHistograms():
			if err := a.addHistogram(g, step, h, l, owned); err != nil {
				return err
			}
		default:
			g.cells[step].count++
		}
	}
	return nil
}

// addsHistograms reports whether the node is an aggregation that adds up histograms. The others count or
// ignore them.
func (n *node) addsHistograms() bool {
	return n.aggregate != nil && (n.aggregate.Op == parser.SUM || n.aggregate.Op == parser.AVG)
}

// takesFloat notes that the cell has a float, and reports whether that counts.
func (s *histogramCell) takesFloat() bool {
	s.hasFloat = s.hasFloat || !s.incompatible
	return !s.incompatible
}

// addHistogram adds a histogram to a cell.
func (a *aggregation) addHistogram(g *group, step int, h *histogram.FloatHistogram, l model.Labels, owned bool) error {
	c, s := &g.cells[step], &g.histograms[step]
	if s.incompatible {
		return nil
	}
	c.count++
	s.hasHistogram = true
	if c.count > 1 && s.sum == nil {
		return nil // floats came first: the result is invalid
	}
	switch h.CounterResetHint {
	case histogram.CounterReset:
		s.reset = true
	case histogram.NotCounterReset:
		s.noReset = true
	}
	err, reconciled := error(nil), false
	switch {
	case c.count == 1:
		if s.sum = h; !owned {
			s.sum = h.Copy()
		}
		s.ownBounds = a.bounds.sizeOf(h) > 0
	case a.aggregate.Op == parser.SUM:
		s.rest, reconciled, err = kahanAdd(s.sum, h, s.rest)
	default:
		reconciled, err = s.average(h, float64(c.count))
	}
	s.ownBounds = s.ownBounds || reconciled
	size := s.size()
	if err := a.quota.TakeBytes(size - s.held); err != nil {
		return err
	}
	s.held = size
	if reconciled {
		a.notes.Add(annotations.NewMismatchedCustomBucketsHistogramsInfo(a.aggregate.Expr.PositionRange(), annotations.HistogramAgg))
	}
	if err == nil {
		return nil
	}
	s.incompatible = true
	if !errors.Is(err, histogram.ErrHistogramsIncompatibleSchema) {
		return nil
	}
	name, err := a.metricName(l)
	a.notes.Add(annotations.NewMixedExponentialCustomHistogramsWarning(name, a.aggregate.Expr.PositionRange()))
	return err
}

// kahanAdd is KahanAdd, with a loop of its own for histograms that have the same buckets, as most series of
// a metric do. BenchmarkHistogramQuery runs it.
func kahanAdd(sum, h, rest *histogram.FloatHistogram) (*histogram.FloatHistogram, bool, error) {
	if rest == nil || sum.CounterResetHint != h.CounterResetHint || !sameLayout(sum, h) || overlapsZeros(h) {
		rest, _, reconciled, err := sum.KahanAdd(h, rest)
		return rest, reconciled, err
	}
	if !h.UsesCustomBuckets() {
		sum.ZeroCount, rest.ZeroCount = kahansum.Inc(h.ZeroCount, sum.ZeroCount, rest.ZeroCount)
		sum.ZeroCount, rest.ZeroCount = kahansum.Inc(0, sum.ZeroCount, rest.ZeroCount)
	}
	sum.Count, rest.Count = kahansum.Inc(h.Count, sum.Count, rest.Count)
	sum.Sum, rest.Sum = kahansum.Inc(h.Sum, sum.Sum, rest.Sum)
	for i, c := range h.PositiveBuckets {
		sum.PositiveBuckets[i], rest.PositiveBuckets[i] = kahansum.Inc(c, sum.PositiveBuckets[i], rest.PositiveBuckets[i])
	}
	for i, c := range h.NegativeBuckets {
		sum.NegativeBuckets[i], rest.NegativeBuckets[i] = kahansum.Inc(c, sum.NegativeBuckets[i], rest.NegativeBuckets[i])
	}
	return rest, false, nil
}

// average adds a histogram to an average of so many, itself included.
func (s *histogramCell) average(h *histogram.FloatHistogram, count float64) (reconciled bool, err error) {
	earlier := false
	if s.mean == nil && moderate(s.sum) && moderate(h) { // their sum cannot overflow
		s.rest, reconciled, err = kahanAdd(s.sum, h, s.rest)
		return reconciled, err
	}
	if s.mean == nil {
		sum, rest := s.sum.Copy(), s.rest
		if rest != nil {
			rest = rest.Copy()
		}
		if rest, _, earlier, err = sum.KahanAdd(h, rest); err != nil {
			return false, err
		}
		if !sum.HasOverflow() {
			s.sum, s.rest = sum, rest
			return earlier, nil
		}
		s.mean = s.sum.Copy().Div(count - 1)
		if s.rest != nil {
			s.rest.Div(count - 1)
		}
	}
	kept := (count - 1) / count
	if s.rest != nil {
		s.rest.Mul(kept)
	}
	s.rest, _, reconciled, err = s.mean.Mul(kept).KahanAdd(h.Copy().Div(count), s.rest)
	return reconciled || earlier, err
}

// moderate reports whether everything in the histogram is far from overflowing.
func moderate(h *histogram.FloatHistogram) bool {
	const most = 1e300
	for _, values := range [][]float64{{h.Count, h.Sum, h.ZeroCount}, h.PositiveBuckets, h.NegativeBuckets, h.CustomValues} {
		for _, v := range values {
			if !(math.Abs(v) < most) {
				return false
			}
		}
	}
	return true
}

// metricName returns the name that upstream puts into warnings about a series.
func (a *aggregation) metricName(l model.Labels) (string, error) {
	switch {
	case a.dropsName && !a.delayed:
		return "", nil
	case a.name() != "":
		return a.name(), nil
	case a.oneGroup():
		return "", errNeedsUpstream // the labels were not read
	}
	return string(l.Get(model.NameLabel)), nil
}

// histogramOf returns the histogram of a cell, or nil if it has floats, and whether the cell has a value at
// all. It may be called once.
func (a *aggregation) histogramOf(c *cell, s *histogramCell) (h *histogram.FloatHistogram, ok bool) {
	switch {
	case s.hasFloat && s.hasHistogram:
		a.notes.Add(annotations.NewMixedFloatsHistogramsAggWarning(a.aggregate.Expr.PositionRange()))
		return nil, false
	case s.incompatible:
		return nil, false
	case !s.hasHistogram:
		return nil, true
	}
	// Adding the rest cannot fail: earlier histograms of the same layout were added up.
	switch {
	case a.aggregate.Op == parser.SUM:
		if h = s.sum; s.rest != nil {
			h, _, _, _ = h.Add(s.rest)
		}
	case s.mean != nil:
		if h = s.mean; s.rest != nil {
			h, _, _, _ = h.Add(s.rest)
		}
	default:
		if h = s.sum.Div(float64(c.count)); s.rest != nil {
			h, _, _, _ = h.Add(s.rest.Div(float64(c.count)))
		}
	}
	h.Compact(0)
	if s.reset && s.noReset {
		a.notes.Add(annotations.NewHistogramCounterResetCollisionWarning(a.aggregate.Expr.PositionRange(), annotations.HistogramAgg))
	}
	return h, true
}
