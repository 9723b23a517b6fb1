package logqltest

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Generator makes queries over data sets by the rules of the grammar. All are valid but for a few, and most
// select lines. The same random numbers make the same queries.
type Generator struct {
	R *rand.Rand
}

// Query returns a query over a data set.
func (g Generator) Query(d *Dataset) Query {
	p := profileOf(d.Kind)
	if g.chance(15) {
		q := Query{Text: g.logQuery(p), Limit: 1 + g.R.IntN(200), Forward: g.chance(50)}
		q.Start = Begin + g.R.Int64N(Span/2)
		q.End = q.Start + g.R.Int64N(2*Span)
		if g.chance(60) {
			q.Start, q.End, q.Limit = Begin-1, Begin+2*Span, 5000
		}
		return q
	}
	q := Query{Text: g.metric(p, 1+g.R.IntN(3))}
	g.setTimes(&q)
	return q
}

// setTimes sets the times of a metric query: on whole seconds, between them, and on odd nanoseconds.
func (g Generator) setTimes(q *Query) {
	const second = int64(1e9)
	q.Start = Begin + g.R.Int64N(Span/second)*second
	switch g.R.IntN(6) {
	case 0:
		q.Start += g.R.Int64N(1000) * 1e6
	case 1:
		q.Start += g.R.Int64N(second)
	case 2:
		q.Start += g.R.Int64N(3) - 1
	}
	if g.chance(30) {
		q.End = q.Start
		return
	}
	q.Step = []int64{1, 5, 7, 10, 15, 30, 60, 60, 90, 300}[g.R.IntN(10)] * second
	if g.chance(15) {
		q.Step = []int64{1500, 333, 999, 60001}[g.R.IntN(4)] * 1e6
	}
	q.End = q.Start + q.Step*g.R.Int64N(40)
	if g.chance(40) { // the step does not divide the range
		q.End += g.R.Int64N(q.Step)
	}
}

func (g Generator) one(of ...string) string { return of[g.R.IntN(len(of))] }

func (g Generator) chance(percent int) bool { return g.R.IntN(100) < percent }

// some joins 1 to n of a list, each once.
func (g Generator) some(n int, of []string) string {
	var parts []string
	for _, i := range g.R.Perm(len(of))[:1+g.R.IntN(min(n, len(of)))] {
		parts = append(parts, of[i])
	}
	return strings.Join(parts, ",")
}

// metric returns an expression of that many levels.
func (g Generator) metric(p *profile, depth int) string {
	if depth == 0 {
		if g.chance(3) {
			return "vector(" + g.one("1", "0", "2.5", "1e308") + ")"
		}
		return g.rangeAggregation(p)
	}
	switch g.R.IntN(10) {
	case 0, 1:
		return g.rangeAggregation(p)
	case 2, 3, 4, 5:
		return g.vectorAggregation(p, g.metric(p, depth-1))
	case 6:
		return g.labelReplace(p, g.metric(p, depth-1))
	case 7:
		return g.withNumber(g.metric(p, depth-1))
	}
	return g.binary(p, depth)
}

func (g Generator) labelReplace(p *profile, of string) string {
	return "label_replace(" + of + ", \"" + g.one("x", "app", "pod", "path") + "\", \"" + g.one("$1", "$1-$2", "v", "", "${1}") +
		"\", \"" + g.one(p.labels...) + "\", \"" + g.one("(.*)", "(.)(.*)", "web|db", "(p).*", "", "/(.)") + "\")"
}

// withNumber combines a vector with a number.
func (g Generator) withNumber(of string) string {
	number := g.one("0", "1", "2", "0.5", "-3", "100", "1e3", "0 / 0", "1 / 0")
	if g.chance(50) {
		return of + " " + g.operator(true) + " " + number
	}
	return number + " " + g.operator(true) + " " + of
}

func (g Generator) operator(number bool) string {
	if !number && g.chance(30) {
		return g.one("and", "or", "unless")
	}
	op := g.one("+", "-", "*", "/", "+", "-", "*", "/", "%", "^", "==", "!=", ">", ">=", "<", "<=")
	if strings.ContainsAny(op, "=<>") && g.chance(40) {
		op += " bool"
	}
	return op
}

// binary returns an operation of two vectors, with labels that often match.
func (g Generator) binary(p *profile, depth int) string {
	op := g.operator(false)
	isSet := strings.Contains("and or unless", op)
	labels := g.some(2, p.labels)
	left, right := g.grouped(p, labels), g.grouped(p, labels)
	switch g.R.IntN(7) {
	case 0: // the same on both sides
		left = g.metric(p, depth-1)
		return left + " " + op + " " + left
	case 1: // anything, often without a match
		left, right = g.metric(p, depth-1), g.metric(p, depth-1)
	case 2:
		return left + " " + op + " on (" + g.one(labels, labels, "app", "") + ") " + right
	case 3:
		return left + " " + op + " ignoring (" + g.one("app", "x", labels, "") + ") " + right
	case 4:
		if isSet {
			break
		}
		more := g.grouped(p, also(labels, g.one(p.labels...)))
		include := g.one("", "", "(app)", "(x)", "("+labels+")")
		if g.chance(50) {
			return more + " " + op + " on (" + labels + ") group_left " + include + " " + right
		}
		return left + " " + op + " on (" + labels + ") group_right " + include + " " + more
	case 5:
		if isSet {
			break
		}
		more := g.grouped(p, also(labels, "pod"))
		return more + " " + op + " ignoring (pod) group_left " + right
	}
	return left + " " + op + " " + right
}

// also adds a label to a list. Twice the same would be a vector that no other part of Loki can read.
func also(labels, one string) string {
	if slices.Contains(strings.Split(labels, ","), one) {
		return labels
	}
	return labels + "," + one
}

// grouped returns an aggregation by labels.
func (g Generator) grouped(p *profile, labels string) string {
	op := g.one("sum", "sum", "max", "min", "avg", "count", "stddev")
	return op + " by (" + labels + ") (" + g.rangeAggregation(p) + ")"
}

func (g Generator) grouping(p *profile) string {
	switch g.R.IntN(8) {
	case 0:
		return ""
	case 1:
		return " by ()"
	case 2, 3:
		return " without (" + g.some(3, p.labels) + ")"
	}
	return " by (" + g.some(3, p.labels) + ")"
}

func (g Generator) vectorAggregation(p *profile, of string) string {
	switch g.R.IntN(8) {
	case 0:
		return g.one("topk", "bottomk", "topk", "bottomk", "approx_topk") + "(" + g.one("1", "2", "3", "10") + ", " + of + ")" +
			g.one("", "", "")
	case 1:
		return g.one("topk", "bottomk") + g.grouping(p) + " (" + g.one("1", "2", "3") + ", " + of + ")"
	case 2:
		return g.one("sort", "sort_desc") + "(" + of + ")"
	}
	op := g.one("sum", "sum", "avg", "min", "max", "count", "stddev", "stdvar")
	if g.chance(50) {
		return op + g.grouping(p) + " (" + of + ")"
	}
	return op + "(" + of + ")" + g.grouping(p)
}
