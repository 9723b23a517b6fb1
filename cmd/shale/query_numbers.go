package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/terminal"
	"github.com/shaledb/shale/internal/terminal/moment"
)

// The formats of numbers, besides table and json.
const (
	formatCSV  = "csv"
	formatPlot = "plot"
)

// queryData is the data of a query's response.
type queryData struct {
	ResultType string          `json:"resultType"`
	Result     json.RawMessage `json:"result"`
	Stats      json.RawMessage `json:"stats"`
}

// empty reports whether the result has no series.
func (d *queryData) empty() bool {
	var series []json.RawMessage
	return (d.ResultType == "vector" || d.ResultType == "matrix") && json.Unmarshal(d.Result, &series) == nil && len(series) == 0
}

// onlyForNumbers refuses flags that need a query for lines.
func (q *queryCmd) onlyForNumbers(p *process) error {
	lines := "log lines; add --logs"
	if q.Logs {
		lines = "log lines, and the query gives numbers"
	}
	for _, name := range []string{"limit", "forward"} {
		if slices.Contains(p.flagsSet, name) {
			return fmt.Errorf("--%s is for %s", name, lines)
		}
	}
	if q.Format == formatRaw || q.Format == formatJSONL {
		return fmt.Errorf("--format %s is for %s", q.Format, lines)
	}
	return nil
}

// runNumbers requests numbers, of PromQL or of LogQL, and prints or draws them.
func (q *queryCmd) runNumbers(ctx context.Context, p *process) error {
	if err := q.onlyForNumbers(p); err != nil {
		return usageError{err}
	}
	server, err := q.server()
	if err != nil {
		return usageError{err}
	}
	now := time.Now()
	start, end, err := q.times(now, slices.Contains(p.flagsSet, "since"))
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := q.deadline(ctx)
	defer cancel()
	screen, points := terminal.NewScreen(p.stdout, p.environ), 60
	if q.Format == formatPlot {
		points = screen.Width
	}
	step := q.stepOf(start, end, points)
	dialect := q.dialect()
	endpoint, form := q.request(&dialect, start, end, step)
	body, err := server.PostForm(ctx, endpoint, form)
	if err != nil {
		return err
	}
	var a client.Envelope
	var d queryData
	if err = json.Unmarshal(body, &a); err == nil {
		err = json.Unmarshal(a.Data, &d)
	}
	if err != nil {
		return fmt.Errorf("%s: the response is not of the %s API: %w", q.URL, dialect.name, err)
	}
	for _, w := range append(a.Warnings, a.Infos...) {
		p.note("%s", w)
	}
	if q.Stats {
		if err := printStats(p.stderr, d.Stats, q.Logs); err != nil {
			return err
		}
	}
	if q.Format == formatJSON {
		_, err = fmt.Fprintf(p.stdout, "%s\n", strings.TrimSpace(string(body)))
	} else {
		err = q.print(p, &d, screen, start, end, step)
	}
	if err != nil || !d.empty() {
		return err
	}
	if e := q.emptiness(p, server, now, start, end); q.Logs {
		e.explainCounts(ctx, q.Expr)
	} else {
		e.explainSamples(ctx, q.Expr)
	}
	return nil
}

// stepOf returns --step, or the step that divides the range into so many points.
func (q *queryCmd) stepOf(start, end time.Time, points int) time.Duration {
	if step := q.Step.Std(); step != 0 {
		return step
	}
	return max(time.Second, (end.Sub(start) / time.Duration(points)).Round(time.Second))
}

// print prints or draws a result.
func (q *queryCmd) print(p *process, d *queryData, screen terminal.Screen, start, end time.Time, step time.Duration) error {
	series, err := d.series()
	switch {
	case err != nil:
		return err
	case q.Format == formatPlot:
		return plotResult(p, screen, series, start, end, step)
	case q.Format == formatCSV:
		return printCSV(p.stdout, series)
	}
	return printTable(p.stdout, series)
}

// times returns the range of a range query, or twice the time of an instant query. since tells whether the
// flag --since is set.
func (q *queryCmd) times(now time.Time, since bool) (start, end time.Time, err error) {
	given := since || q.Start != ""
	switch q.instant = !given && q.End == "" && q.Step == 0 && q.Format != formatPlot; {
	case q.instant && q.Time == "":
		return now, now, nil
	case q.instant:
		if start, err = moment.Parse(q.Time, now); err != nil {
			err = fmt.Errorf("--time: %w", err)
		}
		return start, start, err
	case !given && q.Format != formatPlot:
		return start, end, errors.New("a range query needs --start or --since, such as --since 1h")
	case q.Time != "":
		return start, end, errors.New("--time is for instant queries, and --since, --start, --end, --step and -o plot are for range queries; they exclude each other")
	}
	return q.bounds(now)
}

// dialect is how the API of a language is asked for numbers.
type dialect struct {
	name, root string
	at         func(time.Time) string
}

func (q *queryCmd) dialect() dialect {
	if q.Logs {
		return dialect{"Loki", "loki/api/v1/", func(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }}
	}
	return dialect{"Prometheus", "api/v1/", unixText}
}

// request returns the path of the endpoint and its parameters. A range query has points that are a step
// apart.
func (q *queryCmd) request(d *dialect, start, end time.Time, step time.Duration) (endpoint string, form url.Values) {
	form = url.Values{"query": {q.Expr}}
	if q.Stats && !q.Logs {
		form.Set("stats", "all")
	}
	if q.instant {
		if q.Time != "" {
			form.Set("time", d.at(start))
		}
		return d.root + "query", form
	}
	form.Set("start", d.at(start))
	form.Set("end", d.at(end))
	form.Set("step", strconv.FormatFloat(step.Seconds(), 'f', -1, 64))
	return d.root + "query_range", form
}
