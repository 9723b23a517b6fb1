package syntax

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// prettyWidth is the length in bytes up to which an expression stays on one line.
const prettyWidth = 100

// Pretty lays a query out over several lines, as Loki's format_query does: each expression that is too long
// for one line has its parts on lines of their own, two spaces further in. The result parses to the same
// tree; where Loki's would not, because it loses parentheses, alternatives of line filters or empty
// groupings, they are there.
func Pretty(e Expr) string {
	var l layout
	l.expr(e, 0)
	return l.b.String()
}

// layout collects the lines. Each method writes a node without the line break after it.
type layout struct {
	b strings.Builder
}

func (l *layout) str(parts ...string) {
	for _, s := range parts {
		l.b.WriteString(s)
	}
}

// maxIndent bounds the indentation, in levels: without it the layout of a deep query would grow with the
// square of its depth.
const maxIndent = 100

func (l *layout) indent(level int) {
	for range min(level, maxIndent) {
		l.b.WriteString("  ")
	}
}

func (l *layout) line(level int, s string) {
	l.indent(level)
	l.b.WriteString(s)
}

func (l *layout) expr(e Expr, level int) {
	if !longer(e, prettyWidth) {
		l.line(level, e.String())
		return
	}
	switch e := e.(type) {
	case *LogQuery:
		l.logQuery(e, level)
	case *RangeAggregation:
		l.rangeAggregation(e, level)
	case *VectorAggregation:
		l.vectorAggregation(e, level)
	case *BinaryExpr:
		l.binary(e, level)
	case *LabelReplace:
		l.line(level, "label_replace(\n")
		l.expr(e.Expr, level+1)
		for _, s := range [...]string{e.Dst, e.Replacement, e.Src, e.Pattern} {
			l.str(",\n")
			l.line(level+1, strconv.Quote(s))
		}
		l.str("\n")
		l.line(level, ")")
	default:
		l.line(level, e.String())
	}
}

func (l *layout) logQuery(q *LogQuery, level int) {
	l.line(level, (&LogQuery{Matchers: q.Matchers}).String())
	for i := 0; i < len(q.Stages); {
		l.str("\n")
		if n := lineFilters(q.Stages[i:]); n > 0 {
			l.filters(q.Stages[i:i+n], level+1)
			i += n
			continue
		}
		if _, ok := q.Stages[i].(*Decolorize); !ok { // which Loki does not indent
			l.indent(level + 1)
		}
		l.str(q.Stages[i].String())
		i++
	}
}

// lineFilters returns the number of line filters with which the stages begin.
func lineFilters(stages []Stage) int {
	for i, s := range stages {
		if _, ok := s.(*LineFilter); !ok {
			return i
		}
	}
	return len(stages)
}

// filters puts as many line filters as fit on the first line, and each further one on a line of its own.
func (l *layout) filters(stages []Stage, level int) {
	width := 0
	for i, s := range stages {
		text := s.String()
		width += len(text)
		switch {
		case i == 0:
			l.indent(level)
		case width+i <= prettyWidth:
			l.str(" ")
		default:
			l.str("\n")
			l.indent(level)
		}
		l.str(text)
	}
}

func (l *layout) rangeAggregation(e *RangeAggregation, level int) {
	l.line(level, string(e.Op)+"(\n")
	if e.Op == QuantileOverTime {
		l.line(level+1, fmt.Sprint(e.Quantile)+",\n")
	}
	l.logRange(e.Range, level+1)
	l.str("\n")
	l.line(level, ")")
	if e.Grouping != nil {
		l.grouping(e.Grouping)
	}
}

func (l *layout) logRange(r *LogRange, level int) {
	l.expr(r.Query, level)
	if u := r.Unwrap; u != nil {
		var p printer
		u.writeLabel(&p)
		l.str("\n")
		l.line(level+1, string(p.b))
		for _, c := range u.Filters {
			l.str("\n")
			l.line(level+1, "| "+c.String())
		}
	}
	l.str(" [", model.Duration(r.Range).String(), "]")
	if r.Offset != 0 {
		l.str(" offset ", shortDuration(r.Offset))
	}
}

// shortDuration leaves out units that are zero, if what is left means the same.
func shortDuration(d time.Duration) string {
	s := model.Duration(d).String()
	if got, err := parseDuration(s); err != nil || got != d {
		return d.String()
	}
	return s
}

func (l *layout) grouping(g *Grouping) {
	word := " by ("
	if g.Without {
		word = " without ("
	}
	l.str(word, strings.Join(g.Labels, ", "), ")")
}

func (l *layout) vectorAggregation(e *VectorAggregation, level int) {
	l.line(level, string(e.Op))
	if e.Grouping.Without || len(e.Grouping.Labels) > 0 {
		l.grouping(&e.Grouping)
	}
	l.str("(\n")
	if e.K != 0 {
		l.line(level+1, strconv.Itoa(e.K)+",\n")
	}
	l.expr(e.Expr, level+1)
	l.str("\n")
	l.line(level, ")")
}

func (l *layout) binary(e *BinaryExpr, level int) {
	l.operand(e, e.Left, level+1)
	l.str("\n")
	l.line(level, string(e.Op))
	if e.Bool {
		l.str(" bool")
	}
	var p printer
	e.Matching.write(&p, ", ", beginsWithParen(e, e.Right))
	l.str(string(p.b), "\n")
	l.operand(e, e.Right, level+1)
}

// operand writes a side of an operation, in parentheses if it would fall apart without them.
func (l *layout) operand(e *BinaryExpr, side MetricExpr, level int) {
	inner, ok := side.(*BinaryExpr)
	if !ok || !longer(inner, prettyWidth) || !needsParens(e, inner) {
		l.expr(side, level)
		return
	}
	l.line(level, "(\n")
	l.expr(inner, level+1)
	l.str("\n")
	l.line(level, ")")
}

// beginsWithParen reports whether operand writes a parenthesis first.
func beginsWithParen(e *BinaryExpr, side MetricExpr) bool {
	for {
		inner, ok := side.(*BinaryExpr)
		if !ok {
			return false
		}
		if !longer(inner, prettyWidth) || needsParens(e, inner) {
			return true
		}
		e, side = inner, inner.Left
	}
}

func needsParens(e, inner *BinaryExpr) bool {
	outer, in := precedence(e.Op), precedence(inner.Op)
	if outer != in {
		return in < outer
	}
	rightward := e.Op == OpPow
	return (e.Right == MetricExpr(inner)) != rightward
}
