package promql

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/model"
)

// holding says what upstream holds for each series of a selector, apart from the samples that it selects. It
// is an upper bound for the results of the series. Groups of an aggregation that upstream computes are taken
// to be few.
type holding struct {
	step, width int64 // ms; of a selector without a range, width is the look-back
	ranged      bool  // windows of samples are copied
	raw         bool  // the samples of the range are the result
	// levels are the selector's own steps, and the steps of what is computed from it on another grid: above a
	// subquery or an expression that is evaluated once.
	levels []level
}

// level is values on one grid.
type level struct {
	steps      int64
	operators  int64 // 1: an operator holds its operand and its result together
	histograms int64 // 1: an operator makes new histograms
	reconciles int64 // 1: an operator adds histograms, whose bounds of custom buckets may differ
	sums       bool  // a sum or an average makes a histogram of those of all series
}

// holdings returns what upstream holds for each selector of a statement, by its first matcher.
func holdings(stmt *parser.EvalStmt, e *Engine) map[*labels.Matcher]*holding {
	h := &holder{lookback: stmt.LookbackDelta.Milliseconds(), subqueryStep: e.SubqueryStep, all: make(map[*labels.Matcher]*holding)}
	g := gridOf(stmt)
	h.walk(stmt.Expr, g.step, g.end-g.start, []level{{steps: (g.end-g.start)/g.step + 1}})
	return h.all
}

type holder struct {
	lookback     int64
	subqueryStep time.Duration
	all          map[*labels.Matcher]*holding
}

// walk visits an expression whose steps lie over the given span. The first of the levels is its own.
func (h *holder) walk(e parser.Expr, step, span int64, levels []level) {
	switch e := e.(type) {
	case *parser.ParenExpr:
		h.walk(e.Expr, step, span, levels)
	case *parser.UnaryExpr:
		h.walk(e.Expr, step, span, operator(levels, 0, 1))
	case *parser.BinaryExpr:
		left, right := operands(e, levels)
		h.walk(e.LHS, step, span, left)
		h.walk(e.RHS, step, span, right)
	case *parser.AggregateExpr:
		h.walk(e.Expr, step, span, []level{{steps: levels[0].steps, sums: e.Op == parser.SUM || e.Op == parser.AVG}})
		if e.Param != nil {
			h.walk(e.Param, step, span, []level{{steps: levels[0].steps}})
		}
	case *parser.StepInvariantExpr:
		h.walk(e.Expr, step, 0, append([]level{{steps: 1}}, levels...))
	case *parser.SubqueryExpr:
		inner := max(1, h.stepOf(e).Milliseconds())
		span += e.Range.Milliseconds()
		h.walk(e.Expr, inner, span, append([]level{{steps: span/inner + 1, histograms: 1}}, levels...))
	case *parser.Call:
		for _, arg := range e.Args {
			if m, ok := arg.(*parser.MatrixSelector); ok {
				h.add(m.VectorSelector, &holding{step: step, width: m.Range.Milliseconds(), ranged: true, levels: levels})
				continue
			}
			making := int64(0)
			if _, ok := arg.(*parser.SubqueryExpr); ok {
				making = 1
			}
			below := operator(levels, 1-making, making)
			below[0].sums = below[0].sums && !strings.HasPrefix(e.Func.Name, "histogram_") // floats
			h.walk(arg, step, span, below)
		}
	case *parser.MatrixSelector:
		h.add(e.VectorSelector, &holding{step: step, width: e.Range.Milliseconds(), raw: true, levels: levels})
	case *parser.VectorSelector:
		h.add(e, &holding{step: step, width: h.lookback, levels: levels})
	}
}

func (h *holder) stepOf(e *parser.SubqueryExpr) time.Duration {
	if e.Step == 0 {
		return max(h.subqueryStep, time.Second)
	}
	return e.Step
}

// operator returns the levels below an operator.
func operator(levels []level, operators, histograms int64) []level {
	below := slices.Clone(levels)
	below[0].operators, below[0].histograms = max(below[0].operators, operators), max(below[0].histograms, histograms)
	return below
}

// operands returns the levels of the operands of a binary operator. The result has at most the series of one
// of them and counts for that one, except for or.
func operands(e *parser.BinaryExpr, levels []level) (left, right []level) {
	making := int64(1)
	if e.Op.IsComparisonOperator() || e.Op.IsSetOperator() {
		making = 0
	}
	whole, bare := operator(levels, 1, making), []level{{steps: levels[0].steps}}
	if e.VectorMatching != nil && (e.Op == parser.ADD || e.Op == parser.SUB) {
		whole[0].reconciles = 1
	}
	switch {
	case e.Op == parser.LOR:
		return whole, whole
	case e.LHS.Type() == parser.ValueTypeScalar, e.VectorMatching != nil && e.VectorMatching.Card == parser.CardOneToMany:
		return bare, whole
	}
	return whole, bare
}

func (h *holder) add(e parser.Expr, one *holding) {
	if s, ok := e.(*parser.VectorSelector); ok && len(s.LabelMatchers) > 0 {
		h.all[s.LabelMatchers[0]] = one
	}
}

// A point of the engine is a time and a float, or a time and a pointer to a histogram.
const pointBytes = 16

// mostCharge keeps a charge far from overflowing. Steps times the size of a histogram may exceed it.
const mostCharge = 1 << 60

// reconciledBytes is the size of one bound of custom buckets, and of its bucket. Where histograms that are
// added have different bounds, upstream makes new bounds at each step, and as many buckets.
const reconciledBytes = 16

// summed returns the bytes that a sum or an average of the histograms takes.
func (h *holding) summed(size, bounds int64) int64 {
	bytes := 0.0
	for _, l := range h.levels {
		if l.sums && size > 0 {
			bytes += float64(l.steps) * float64(size+reconciledBytes*bounds)
		}
	}
	return int64(min(bytes, mostCharge))
}

// results returns the bytes of results with so many values at the selector's own steps, apart from the first
// copy of their histograms. These have the given size and number of bounds; a size of 0 means floats.
func (h *holding) results(values, size, bounds int64) int64 {
	bytes := float64(values) * pointBytes
	for i, l := range h.levels {
		steps, made := float64(l.steps), float64(l.steps)
		if i == 0 {
			made = float64(values)
		} else {
			bytes += steps * pointBytes
		}
		bytes += float64(l.operators)*steps*pointBytes + made*float64(l.histograms*size+l.reconciles*reconciledBytes*bounds)
	}
	return int64(min(bytes, mostCharge))
}

// series returns the bytes that upstream holds for a series until the query ends, and those that the series
// share: the windows, and the sum of all series.
func (h *holding) series(p *points, labelBytes int) (kept, shared int64) {
	samples := int64(len(p.times))
	blobs, size, bounds := p.blobs.largest()
	values := mostValues(h.levels[0].steps, samples, h.width, h.step)
	switch {
	case h.raw:
		return samples*pointBytes + blobs*size, 0
	case h.ranged:
		// Both a ring of samples and a window of points, which takes histograms of either form.
		kept = h.results(values, size, bounds) + int64(min(float64(values)*float64(size), mostCharge))
		shared = 3*samples*pointBytes + 2*blobs*size
	default:
		// A histogram that is looked back at and found again at its own time is decoded twice.
		kept = h.results(values, size, bounds) + min(values, 2*blobs)*size
	}
	if h.levels[0].operators > 0 || h.ranged {
		kept += int64(labelBytes) // without the name
	}
	return kept, shared + h.summed(size, bounds)
}

// largest returns how many points are histograms, and the decoded size and the number of bounds of the one
// with the longest bytes.
func (b *blobs) largest() (n, size, bounds int64) {
	if b == nil {
		return 0, 0, 0
	}
	longest := -1
	for i, k := range b.kinds {
		if k == model.KindFloat {
			continue
		}
		if n++; longest < 0 || len(b.blob(i)) > len(b.blob(longest)) {
			longest = i
		}
	}
	if longest < 0 {
		return 0, 0, 0
	}
	var h model.Histogram
	if err := h.Parse(b.blob(longest)); err != nil {
		return n, decodedBytes(len(b.blob(longest))), 0 // a read of that point itself reports the error
	}
	size = int64(histogramBytes + 8*(len(h.PositiveSpans)+len(h.NegativeSpans)+len(h.Positive)+len(h.Negative)))
	return n, size, int64(len(h.Custom))
}
