package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/terminal"
)

const (
	// lookback is how long a sample counts in an instant query, unless the server is told otherwise.
	lookback = 5 * time.Minute
	// maxSelectors bounds the selectors of a query that are looked at.
	maxSelectors = 4
)

// selection is a selector of a query with the times at which the query needs samples of it.
type selection struct {
	text     string
	matchers []*labels.Matcher
	from, to time.Time
	shifted  bool // by @ or offset
}

// explainSamples explains why a PromQL query gives no series.
func (e *emptiness) explainSamples(ctx context.Context, expr string) {
	ctx, cancel := context.WithTimeout(ctx, maxExplaining)
	defer cancel()
	e.say("no series of %.300s %s", expr, e.asked())
	selections := e.selections(expr)
	explained := false
	for _, s := range selections {
		// last_over_time keeps the names of metrics, so that the series of a selector of several stay different.
		found, err := e.index.Server.Query(ctx, fmt.Sprintf("count(last_over_time(%s[%dms]))", s.text, s.to.Sub(s.from).Milliseconds()), s.to.UnixMilli())
		if err != nil {
			return
		}
		if len(found) == 0 {
			other := *e
			other.index.From, other.index.To, other.shifted = s.from, s.to, s.shifted
			other.explainSelector(ctx, s.matchers)
			explained = true
		}
	}
	switch {
	case explained || len(selections) == 0:
	case len(selections) > 1:
		e.say("each selector of the query has samples there; what the query does with them leaves none")
	default:
		e.say("the selector %s has samples there; what the query does with them leaves none", selections[0].text)
	}
}

// selections returns the different selectors of a query.
func (e *emptiness) selections(expr string) (all []selection) {
	tree, err := parser.NewParser(parser.Options{
		EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true,
	}).ParseExpr(expr)
	if err != nil {
		return nil
	}
	parser.Inspect(tree, func(node parser.Node, path []parser.Node) error {
		v, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		s := selection{text: selectorText(v.LabelMatchers), matchers: v.LabelMatchers, from: e.index.From.Add(-lookback), to: e.index.To}
		if v.Timestamp != nil {
			s.to = timestamp.Time(*v.Timestamp)
			s.from = s.to.Add(-lookback)
		}
		if len(path) > 0 {
			if m, ok := path[len(path)-1].(*parser.MatrixSelector); ok {
				s.from = s.from.Add(lookback - m.Range)
			}
		}
		s.shifted = v.Timestamp != nil || v.OriginalOffset != 0
		s.from, s.to = s.from.Add(-v.OriginalOffset), s.to.Add(-v.OriginalOffset)
		same := func(o selection) bool { return o.text == s.text && o.from.Equal(s.from) && o.to.Equal(s.to) }
		if len(all) < maxSelectors && s.from.Before(s.to) && !slices.ContainsFunc(all, same) {
			all = append(all, s)
		}
		return nil
	})
	return all
}

// newestSample says when a series of the selector had its last sample before the end of the range. It looks
// back farther and farther, at one series, so that it stays cheap for selectors of many series.
func (e *emptiness) newestSample(ctx context.Context, selector string) {
	end := e.index.To
	for _, back := range []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		index := e.index
		index.From = end.Add(-back)
		found, err := index.Series(ctx, selector, 1)
		if err != nil {
			return
		}
		if len(found) == 0 {
			continue
		}
		at, err := newestOf(ctx, index.Server, terminal.Selector(found[0], nil), end, back)
		if err != nil {
			return
		}
		if !at.IsZero() {
			e.say("a series of %s has its newest sample before that at %s%s", selector, localTime(at), e.earlier(at))
			return
		}
	}
	e.say("series of %s exist, but no sample of them is from before %s", selector, localTime(end))
}

// newestOf returns the time of the last sample of a series within a time before end, or a zero time.
func newestOf(ctx context.Context, server *client.Server, series string, end time.Time, back time.Duration) (at time.Time, err error) {
	step := back.Milliseconds() / 60
	counts, err := server.QueryRange(ctx, fmt.Sprintf("count_over_time(%s[%dms])", series, step), end.UnixMilli()-59*step, end.UnixMilli(), step)
	if err != nil || len(counts) == 0 || len(counts[0].Values) == 0 {
		return at, err
	}
	last := counts[0].Values[len(counts[0].Values)-1].Ms
	samples, err := server.Query(ctx, fmt.Sprintf("%s[%dms]", series, step), last)
	if err != nil {
		return at, err
	}
	if len(samples) > 0 && len(samples[0].Values) > 0 {
		last = samples[0].Values[len(samples[0].Values)-1].Ms
	}
	return time.UnixMilli(last), nil
}

// explainCounts explains why a metric query of LogQL gives no series.
func (e *emptiness) explainCounts(ctx context.Context, expr string) {
	ctx, cancel := context.WithTimeout(ctx, maxExplaining)
	defer cancel()
	e.say("no series of %.300s %s", expr, e.asked())
	ranges := logRanges(expr)
	explained := false
	lines := int64(0)
	for _, r := range ranges {
		window := *e
		window.index.From, window.index.To = e.index.From.Add(-r.Range-r.Offset), e.index.To.Add(-r.Offset)
		window.shifted = r.Offset != 0
		selector := logMatchers(r.Query.Matchers)
		there, err := window.index.LineVolume(ctx, selectorText(selector))
		if err != nil {
			return
		}
		if lines += there.Lines; there.Lines == 0 {
			window.explainSelector(ctx, selector)
			explained = true
		}
	}
	switch {
	case explained || len(ranges) == 0:
	case len(ranges) > 1:
		e.say("each selector of the query has lines there; what the query does with them leaves no number")
	default:
		e.say("the selector %s has %d %s there; what the query does with that leaves no number", selectorText(logMatchers(ranges[0].Query.Matchers)), lines, english.PluralWord(int(lines), "line", ""))
	}
}

// logRanges returns the first of the different ranges of a query.
func logRanges(expr string) (ranges []*syntax.LogRange) {
	tree, err := syntax.Parse(expr)
	if err != nil {
		return nil
	}
	syntax.Walk(tree, func(n syntax.Node) bool {
		r, ok := n.(*syntax.LogRange)
		if ok && len(ranges) < maxSelectors && !slices.ContainsFunc(ranges, func(o *syntax.LogRange) bool { return o.String() == r.String() }) {
			ranges = append(ranges, r)
		}
		return !ok
	})
	return ranges
}
