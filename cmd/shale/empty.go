package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	prommodel "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// maxExplaining bounds the time that goes into explaining an empty result.
const maxExplaining = 5 * time.Second

// emptiness explains why a result is empty: what was asked, and what there is instead. It asks the server for
// that. If the server does not say, the explanation is shorter, and never an error.
type emptiness struct {
	index    client.Index // of the range that was asked
	now      time.Time
	untilNow bool // no end was given
	instant  bool // the query is for one time
	shifted  bool // the selector has times of its own, by @ or offset
	say      func(format string, args ...any)
}

// asked describes the range and the tenant.
func (e *emptiness) asked() string {
	i := &e.index
	when := "at " + localTime(i.To)
	if i.From.Before(i.To) {
		when = fmt.Sprintf("from %s to %s (%s)", localTime(i.From), localTime(i.To), config.Duration(i.To.Sub(i.From).Round(time.Millisecond)))
	}
	if i.Server.Tenant == "" {
		return when + ", of the default tenant"
	}
	return fmt.Sprintf("%s, of the tenant %q", when, i.Server.Tenant)
}

// row is what the selectors of the signal select.
func (e *emptiness) row() string {
	if e.index.Logs {
		return "stream"
	}
	return "series"
}

// rows is row for several.
func (e *emptiness) rows() string {
	if e.index.Logs {
		return "streams"
	}
	return "series"
}

// explainLines explains why a log query gives no lines.
func (e *emptiness) explainLines(ctx context.Context, expr string) {
	ctx, cancel := context.WithTimeout(ctx, maxExplaining)
	defer cancel()
	q, err := syntax.ParseLog(expr)
	if err != nil {
		e.say("no lines %s", e.asked())
		return
	}
	selector := logMatchers(q.Matchers)
	e.say("no lines of %.300s %s", expr, e.asked())
	there, err := e.index.LineVolume(ctx, selectorText(selector))
	switch {
	case err != nil:
	case there.Lines > 0 && len(q.Stages) > 0:
		e.say("the selector %s has %d %s there; what follows the selector leaves none", selectorText(selector), there.Lines, english.PluralWord(int(there.Lines), "line", ""))
	case there.Lines == 0:
		e.explainSelector(ctx, selector)
	}
}

// explainList explains why there is nothing to list of the series that a selector selects; of all if it has
// no matchers. A selector that could not be parsed is not known.
func (e *emptiness) explainList(ctx context.Context, what string, selector []*labels.Matcher, known bool) {
	ctx, cancel := context.WithTimeout(ctx, maxExplaining)
	defer cancel()
	e.say("no %s %s", what, e.asked())
	if len(selector) > 0 {
		e.explainSelector(ctx, selector)
		return
	}
	all, err := e.ever(ctx)
	if err != nil || !known {
		return
	}
	names, err := all.Names(ctx, "", 1)
	switch {
	case err != nil:
	case len(names) > 0:
		e.say("there are %s at other times: try a longer --since", e.rows())
	default:
		e.say("%s", e.nothing())
	}
}

// nothing says that the tenant has no data of the signal.
func (e *emptiness) nothing() string {
	if e.index.Logs {
		return "the tenant has no logs at all"
	}
	return "the tenant has no metrics at all"
}

// explainSilence says why a tail shows nothing, if its selector selects nothing in the range.
func (e *emptiness) explainSilence(ctx context.Context, expr string) {
	ctx, cancel := context.WithTimeout(ctx, maxExplaining)
	defer cancel()
	q, err := syntax.ParseLog(expr)
	if err != nil {
		return
	}
	selector := logMatchers(q.Matchers)
	if found, err := e.index.Series(ctx, selectorText(selector), 1); err == nil && len(found) == 0 {
		e.say("no line so far, and none of %s %s; still following", selectorText(selector), e.asked())
		e.explainSelector(ctx, selector)
	}
}

// explainSelector says what keeps a selector from selecting anything in the range.
func (e *emptiness) explainSelector(ctx context.Context, selector []*labels.Matcher) {
	missing, err := e.missing(ctx, selector)
	switch {
	case err != nil:
	case missing != "":
		e.say("%s", missing)
	case e.index.Logs:
		e.nearestLine(ctx, selectorText(selector))
	default:
		e.newestSample(ctx, selectorText(selector))
	}
}

// ever returns the index over all times for which it answers. Loki refuses ranges of more than a month.
func (e *emptiness) ever(ctx context.Context) (client.Index, error) {
	all := e.index
	all.From, all.To = time.Unix(0, 0), e.now.Add(time.Hour)
	if all.To.Before(e.index.To) {
		all.To = e.index.To
	}
	_, err := all.Names(ctx, "", 1)
	if refused := new(client.StatusError); errors.As(err, &refused) && refused.Status == 400 {
		all.From = all.To.Add(-30 * 24 * time.Hour)
		_, err = all.Names(ctx, "", 1)
	}
	return all, err
}

// maxListed bounds the values that are asked for to find similar ones.
const maxListed = 10_000

// missing returns what the server lacks for a selector, whatever the range; "" if it lacks nothing.
func (e *emptiness) missing(ctx context.Context, selector []*labels.Matcher) (string, error) {
	all, err := e.ever(ctx)
	if err != nil {
		return "", err
	}
	// A prefix of the matchers has to select something by itself, so those that need a value come first, and
	// the name of a metric before the others.
	rank := func(m *labels.Matcher) int {
		switch {
		case m.Matches(""):
			return 2
		case m.Name == prommodel.MetricNameLabel:
			return 0
		}
		return 1
	}
	selector = slices.Clone(selector)
	slices.SortStableFunc(selector, func(a, b *labels.Matcher) int { return cmp.Compare(rank(a), rank(b)) })
	for i, m := range selector {
		found, err := all.Series(ctx, selectorText(selector[:i+1]), 1)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return e.lacks(ctx, &all, m, selector[:i])
		}
	}
	return "", nil
}

// lacks describes the first matcher that no series satisfies, of those that satisfy the matchers before it.
func (e *emptiness) lacks(ctx context.Context, all *client.Index, m *labels.Matcher, before []*labels.Matcher) (string, error) {
	among, where := "", ""
	if len(before) > 0 {
		among = selectorText(before)
		where = " of " + among
	}
	values, err := all.Values(ctx, m.Name, among, maxListed)
	if err != nil {
		return "", err
	}
	switch {
	case m.Matches(""):
		return fmt.Sprintf("every %s%s has the label %s, with %s; none satisfies %s", e.row(), where, m.Name, listed("value", values, ""), m), nil
	case len(values) > 0 && m.Name == prommodel.MetricNameLabel && m.Type == labels.MatchEqual:
		return fmt.Sprintf("no metric is called %q; %s", m.Value, listed("metric", values, m.Value)), nil
	case len(values) > 0 && m.Type == labels.MatchEqual:
		return fmt.Sprintf("the label %s%s has no value %q; %s", m.Name, where, m.Value, listed("value", values, m.Value)), nil
	case len(values) > 0:
		return fmt.Sprintf("no value of the label %s%s satisfies %s; %s", m.Name, where, m, listed("value", values, "")), nil
	}
	names, err := all.Names(ctx, among, maxListed)
	switch {
	case err != nil:
		return "", err
	case len(names) > 0:
		return fmt.Sprintf("no %s%s has the label %s; %s", e.row(), where, m.Name, listed("label", names, m.Name)), nil
	}
	return e.nothing(), nil
}

// maxShown is how many values a message lists.
const maxShown = 10

// listed lists the first of some values and, if there is one, the value that is nearest to a mistyped one.
func listed(what string, values []string, typed string) string {
	show := func(v string) string { return v }
	if what == "value" {
		show = strconv.Quote
	}
	text, best := "", 1+len(typed)/3
	for _, v := range values {
		if d := config.Distance(typed, v[:min(len(v), 100)]); typed != "" && d < best {
			text, best = "did you mean "+show(v)+"? ", d
		}
	}
	number := strconv.Itoa(len(values))
	if len(values) >= maxListed {
		number += " or more"
	}
	if len(values) != 1 {
		what += "s"
	}
	shown := make([]string, 0, maxShown+1)
	for _, v := range values[:min(len(values), maxShown)] {
		shown = append(shown, show(v))
	}
	if len(values) > maxShown {
		shown = append(shown, "...")
	}
	return text + number + " " + what + ": " + strings.Join(shown, ", ")
}

// nearestLine says when the selector has lines, before the range or after it.
func (e *emptiness) nearestLine(ctx context.Context, selector string) {
	all, err := e.ever(ctx)
	if err != nil {
		return
	}
	for _, side := range []struct {
		forward  bool
		from, to time.Time
	}{{false, all.From, e.index.From}, {true, e.index.To, all.To}} {
		pages := client.Pages{Server: all.Server, Expr: selector, Forward: side.forward, From: side.from.UnixNano(), To: side.to.UnixNano()}
		if pages.From >= pages.To {
			continue
		}
		_, lines, err := pages.Request(ctx, 1)
		switch {
		case err != nil:
			return
		case len(lines) == 0:
		case side.forward:
			at := time.Unix(0, lines[0].At)
			e.say("the first line of %s after that is from %s: try --end %s", selector, localTime(at), localTime(at.Truncate(time.Second).Add(time.Second)))
			return
		default:
			at := time.Unix(0, lines[0].At)
			e.say("the newest line of %s before that is from %s%s", selector, localTime(at), e.earlier(at))
			return
		}
	}
}

// earlier suggests the flag by which the range or the time of the query includes a time before it.
func (e *emptiness) earlier(at time.Time) string {
	switch {
	case e.shifted:
		return ""
	case e.instant:
		return ": try --time " + localTime(at)
	case !e.untilNow:
		return ": try --start " + localTime(at.Truncate(time.Second))
	}
	ago, unit := e.now.Sub(at), time.Minute
	switch {
	case ago >= 48*time.Hour:
		unit = 24 * time.Hour
	case ago >= time.Hour:
		unit = time.Hour
	}
	return ": try --since " + config.Duration((ago/unit+1)*unit).String()
}

// logMatchers returns the matchers of LogQL as those of PromQL.
func logMatchers(matchers []*syntax.Matcher) []*labels.Matcher {
	types := map[model.MatchOp]labels.MatchType{
		model.MatchEqual: labels.MatchEqual, model.MatchNotEqual: labels.MatchNotEqual,
		model.MatchRegexp: labels.MatchRegexp, model.MatchNotRegexp: labels.MatchNotRegexp,
	}
	out := make([]*labels.Matcher, 0, len(matchers))
	for _, m := range matchers {
		// The parser has compiled all regular expressions.
		out = append(out, labels.MustNewMatcher(types[m.Op], m.Name, m.Value))
	}
	return out
}

// selectorText writes matchers as both languages read them: up{job="a"}.
func selectorText(matchers []*labels.Matcher) string {
	name, pairs := "", make([]string, 0, len(matchers))
	for _, m := range matchers {
		if m.Name == prommodel.MetricNameLabel && m.Type == labels.MatchEqual && name == "" && prommodel.LegacyValidation.IsValidMetricName(m.Value) {
			name = m.Value
			continue
		}
		pairs = append(pairs, m.String())
	}
	if name != "" && len(pairs) == 0 {
		return name
	}
	return name + "{" + strings.Join(pairs, ", ") + "}"
}
