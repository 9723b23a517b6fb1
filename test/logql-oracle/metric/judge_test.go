package metric

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// keyword matches the words of the language, and not those in quotes.
var keyword = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|[a-z_]+|[-+*/%^<>=!|]+")

// keywords returns the words of a query, each once.
func keywords(query string) []string {
	seen := map[string]bool{}
	for _, w := range keyword.FindAllString(query, -1) {
		if w[0] != '"' && w[0] != '`' {
			seen[w] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// judge counts equal results, and differences by their reasons.
type judge struct {
	t       *testing.T
	stage   string
	same    int
	wrong   int
	shown   int
	reasons map[string]int
	seen    map[*asked]bool
}

func (j *judge) begin(stage string) {
	j.stage, j.same, j.wrong, j.shown, j.reasons = stage, 0, 0, 0, map[string]int{}
}

func (j *judge) end(objects int) {
	j.t.Logf("%s (%d objects in the bucket): %d the same, %d wrong", j.stage, objects, j.same, j.wrong)
	for _, why := range slices.Sorted(maps.Keys(j.reasons)) {
		j.t.Logf("    %d: %s", j.reasons[why], why)
	}
	if j.wrong > 0 {
		j.t.Errorf("%s: %d results are wrong", j.stage, j.wrong)
	}
}

func (j *judge) compare(a *asked, us *logqltest.Result) {
	d := diff(a, us)
	if d == "" {
		j.same++
		return
	}
	if why := known(a, us); why != "" {
		j.reasons[why]++
		return
	}
	j.wrong++
	if j.seen == nil {
		j.seen = map[*asked]bool{}
	}
	if j.shown < *show && !j.seen[a] {
		j.shown++
		b, r := shrink(a, us)
		j.t.Error(describe(b, r))
	}
	j.seen[a] = true
}

func diff(a *asked, us *logqltest.Result) string {
	return logqltest.Diff(a.them, us, strings.Contains(a.query.Text, "sort"))
}

// known returns why a result differs on purpose, or "". Each reason is proved by running Loki or us again,
// without the cause.
func known(a *asked, us *logqltest.Result) string {
	switch {
	case evaluated(a.them.Error) && evaluated(us.Error):
		return "of several errors of a query another one is reported"
	case a.query.Limit > 0 && a.them.Error == "" && us.Error == "":
		if why := sameTimes(a, us); why != "" {
			return why
		}
	case strings.Contains(a.query.Text, "label_replace") && logqltest.Diff(a.them.Join(), us.Join(), false) == "":
		return "series that label_replace made equal are one series in Loki, with several points of one time"
	}
	q, reasons := otherwise(a.query)
	if fraction.MatchString(q.Text) && logqltest.Diff(a.loki.run(q).Align(q), us, false) == "" {
		return "Loki rounds the time of a step and an offset apart, and is a millisecond off"
	}
	if reasons != "" && logqltest.Diff(a.loki.run(q), us, false) == "" {
		return reasons
	}
	if b := swapped(q); b != nil && logqltest.Diff(a.loki.run(b), us, false) == "" {
		return "aggregations take the elements of an or in the order of their labels, which an infinity shows"
	}
	if atOnce.MatchString(a.query.Text) {
		const why = "first, last and counters of lines of one time, of several streams: their order is ours"
		d := untied(a.data)
		if agrees(q, d) {
			return why
		}
		if also := random(d, q); also != "" {
			return why + ", and " + also
		}
	}
	return randomly(a, q, us)
}

// random explains what differs over other data by Loki's random choices.
func random(d *logqltest.Dataset, q *logqltest.Query) string {
	s, err := newStore(d)
	if err != nil {
		return ""
	}
	a := &asked{data: d, loki: s, query: *q, them: s.run(q)}
	return randomly(a, q, logqltest.Run(context.Background(), logqltest.InMemory(d), logqltest.Tenant, q))
}

// swapped returns the query with the sides of each or exchanged, whose results are in another order in
// Loki. It returns nil without an or.
func swapped(q *logqltest.Query) *logqltest.Query {
	e, err := syntax.Parse(q.Text)
	if err != nil {
		return nil
	}
	n := 0
	syntax.Walk(e, func(e syntax.Node) bool {
		if b, ok := e.(*syntax.BinaryExpr); ok && b.Op == syntax.OpOr {
			b.Left, b.Right = b.Right, b.Left
			n++
		}
		return true
	})
	if n == 0 {
		return nil
	}
	out := *q
	out.Text = fmt.Sprint(e)
	return &out
}

// otherwise returns the query as Loki must be asked to do what we do, and how it differs.
func otherwise(q logqltest.Query) (*logqltest.Query, string) {
	var reasons []string
	if early.MatchString(q.Text) {
		reasons = append(reasons, "a label filter sees labels as they are when it runs")
		q.Text = early.ReplaceAllString(q.Text, "| ($1 or $1)")
	}
	if chosen.MatchString(q.Text) {
		reasons = append(reasons, "Loki stops to parse at a chosen field that is a label of the stream, too")
		q.Text = chosen.ReplaceAllString(q.Text, `$0 | level_extracted!="-" or status_extracted!="-" or n_extracted!="-" or f_extracted!="-" `)
	}
	return &q, strings.Join(reasons, ", or ")
}

// evaluated reports whether an error is one of the evaluation, and not of the query's text.
func evaluated(text string) bool {
	return strings.Contains(text, "pipeline error") || strings.Contains(text, "matching")
}

var (
	early    = regexp.MustCompile(`\| ([a-z_]+(?:!=|=~|!~|==|>=|<=|=|>|<)(?:"[^"]*"|[0-9][0-9.a-zA-Z]*))`)
	fraction = regexp.MustCompile(`offset -?\d+us`)
	chosen   = regexp.MustCompile(`\| logfmt (n, f, level|f=)[^|\[)]*`)
	pick     = regexp.MustCompile(`((?:topk|bottomk)(?: (?:by|without) \([a-z_,]*\) )? ?)\([0-9]+`)
	atOnce   = regexp.MustCompile(`first_over_time|last_over_time|rate_counter`)
)

// untied returns the data set without lines that have the time of a line of another stream.
func untied(d *logqltest.Dataset) *logqltest.Dataset {
	streams := map[int64]int{}
	for i, s := range d.Streams {
		for _, l := range s.Lines {
			if n, ok := streams[l.Time]; ok && n != i {
				streams[l.Time] = -1
			} else {
				streams[l.Time] = i
			}
		}
	}
	out := *d
	out.Streams = slices.Clone(d.Streams)
	for i := range out.Streams {
		out.Streams[i].Lines = slices.DeleteFunc(slices.Clone(d.Streams[i].Lines), func(l logqltest.Line) bool { return streams[l.Time] < 0 })
	}
	return &out
}

// agrees reports whether Loki and we agree over other data.
func agrees(q *logqltest.Query, d *logqltest.Dataset) bool {
	s, err := newStore(d)
	if err != nil {
		return false
	}
	them, us := s.run(q), logqltest.Run(context.Background(), logqltest.InMemory(d), logqltest.Tenant, q)
	if strings.Contains(q.Text, "label_replace") {
		them, us = them.Join(), us.Join()
	}
	return logqltest.Diff(them, us, false) == ""
}

// sameTimes explains another order of lines of one time, and with it another choice at the limit.
func sameTimes(a *asked, ours *logqltest.Result) string {
	them, us := a.them.SortLines(nil), ours.SortLines(nil)
	if logqltest.Diff(them, us, false) == "" {
		return "the order of lines of one time, of several streams, is ours"
	}
	if n := them.Lines(); n != us.Lines() || n < a.query.Limit {
		return ""
	}
	last := them.LastTime(a.query.Forward)
	if logqltest.Diff(them.SortLines(&last), us.SortLines(&last), false) == "" {
		return "the choice among lines of one time, at the limit, is ours"
	}
	return ""
}

// normal returns a result of Loki without what it does to times and to series that became equal.
func normal(q *logqltest.Query, r *logqltest.Result) *logqltest.Result {
	if fraction.MatchString(q.Text) {
		r = r.Align(q)
	}
	if strings.Contains(q.Text, "label_replace") {
		r = r.Join()
	}
	return r
}

// randomly explains what differs between Loki's own runs: it adds up, and chooses among equal values, in a
// random order.
func randomly(a *asked, q *logqltest.Query, us *logqltest.Result) string {
	picks, differs, heard := pick.MatchString(a.query.Text), false, answers{}
	if strings.Contains(q.Text, "label_replace") {
		us = us.Join()
	}
	// Of two choices, of one at each of many steps, or with large values, few runs give our result.
	for range 300 {
		again := normal(q, a.loki.run(q))
		heard.add(again)
		switch {
		case logqltest.Diff(again, us, false) != "":
			differs = differs || logqltest.Diff(again, normal(q, a.them), false) != ""
		case picks:
			return "Loki chooses among equal values at random"
		default:
			return "Loki adds up in a random order, which is seen where digits cancel out"
		}
	}
	if !picks && heard.explain(us) {
		return "Loki adds up in a random order, again at each step: it gives each of our points, though not in one run"
	}
	all := *q
	all.Text = pick.ReplaceAllString(q.Text, "${1}(1000")
	switch {
	case !picks || a.them.Error != "" || us.Error != "":
		return ""
	case reflect.DeepEqual(a.them.Values(), us.Values()) && agrees(&all, a.data):
		return "Loki chooses among equal values by the order of its operands; the values are the same"
	case !differs:
		return ""
	case reflect.DeepEqual(a.them.Values(), us.Values()):
		return "Loki chooses among equal values at random; the values are the same"
	}
	return "Loki chooses among equal values at random, below another operation"
}

func describe(a *asked, us *logqltest.Result) string {
	return fmt.Sprintf("%s: %s\n%s\n%sLoki:\n%sours:\n%s", a.data.Name, a.query.String(), diff(a, us), short(a.data.String()), short(a.them.String()), short(us.String()))
}

// short returns the first lines of a text.
func short(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[:min(len(lines), 12)], "")
}
