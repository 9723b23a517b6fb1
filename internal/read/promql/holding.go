package promql

import (
	"slices"
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
		h.walk(e.Expr, step, span, []level{{steps: levels[0].steps}})
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
			h.walk(arg, step, span, operator(levels, 1-making, making))
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

// results returns the bytes of results with so many values at the selector's own steps, apart from the first
// copy of their histograms. These have the given size; 0: all values are floats.
func (h *holding) results(values, size int64) int64 {
	bytes := values * pointBytes
	for i, l := range h.levels {
		made := l.steps
		if i == 0 {
			made = values
		} else {
			bytes += l.steps * pointBytes
		}
		bytes += l.operators*l.steps*pointBytes + l.histograms*made*size
	}
	return bytes
}

// series returns the bytes that upstream holds for a series until the query ends, and those that it needs
// only while it computes one series.
func (h *holding) series(p *points, labelBytes int) (kept, window int64) {
	samples := int64(len(p.times))
	blobs, size := p.blobs.largest()
	values := mostValues(h.levels[0].steps, samples, h.width, h.step)
	switch {
	case h.raw:
		return samples*pointBytes + blobs*size, 0
	case h.ranged:
		// Both a ring of samples and a window of points, which takes histograms of either form.
		kept = h.results(values, size) + values*size
		window = 3*samples*pointBytes + 2*blobs*size
	default:
		// A histogram that is looked back at and found again at its own time is decoded twice.
		kept = h.results(values, size) + min(values, 2*blobs)*size
	}
	if h.levels[0].operators > 0 || h.ranged {
		kept += int64(labelBytes) // without the name
	}
	return kept, window
}

// largest returns how many points are histograms, and the decoded size of the one with the longest bytes.
func (b *blobs) largest() (n, size int64) {
	if b == nil {
		return 0, 0
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
		return 0, 0
	}
	var h model.Histogram
	if err := h.Parse(b.blob(longest)); err != nil {
		return n, decodedBytes(len(b.blob(longest))) // a read of that point itself reports the error
	}
	return n, int64(histogramBytes + 8*(len(h.PositiveSpans)+len(h.NegativeSpans)+len(h.Positive)+len(h.Negative)))
}
