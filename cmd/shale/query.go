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
	"github.com/shaledb/shale/internal/config"
)

type queryCmd struct {
	Expr string `arg:"" name:"query" help:"The query: PromQL, or with --logs LogQL."`

	serverFlags
	period
	Time   string          `placeholder:"TIME" help:"Time of an instant query, written like --start. Default: now."`
	Step   config.Duration `placeholder:"TIME" help:"Step of a range query. Default: a 60th of the range, at least 1s."`
	Format string          `short:"o" enum:"table,json,csv,raw,jsonl" default:"table" placeholder:"FORMAT" help:"Output: table, json (the unchanged response) or csv. With --logs: table (time, labels, line), raw (lines only), jsonl or json."`
	Stats  bool            `help:"Print the cost of the query on standard error."`

	Logs    bool `help:"Query log lines with LogQL. Prints the newest lines of the last hour, newest first."`
	Limit   int  `default:"100" placeholder:"N" help:"With --logs: maximum number of lines; 0: all."`
	Forward bool `help:"With --logs: print the oldest lines, oldest first."`

	instant bool // the query is for one time
}

// Help teaches the command by examples.
func (*queryCmd) Help() string {
	return `Show the latest value of every series of a metric:

    shale query up

Show requests per second by job over the last hour, one point per minute, as CSV:

    shale query 'sum by (job) (rate(http_requests_total[5m]))' --since 1h --step 1m --format csv

Show raw samples of a Graphite path (a name with dots needs quotes and braces):

    shale query '{"web1.load.load.shortterm"}[10m]' --time 2026-03-01T12:00:00Z

Show the newest lines of one app that contain "timeout", of the last hour, lines only:

    shale query --logs '{app="checkout"} |= "timeout"' -o raw

Show the lines of a morning in the local time zone, and what the query cost:

    shale query --logs '{app="checkout"}' --start '2026-11-23 06:00' --end '2026-11-23 12:00' --stats

Show the failed requests of a day, oldest first, one JSON object per line:

    shale query --logs '{app="checkout"} | json | status >= 500' --since 1d --forward --limit 0 -o jsonl

A PromQL query is an instant query, unless --since, --start, --end or --step is given. Times are dates, local times, RFC 3339,
Unix seconds or milliseconds, now, now-1h or -1h. Tables show times in UTC, and write control characters as \n or \x1b.`
}

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

// Run queries and prints.
func (q *queryCmd) Run(ctx context.Context, p *process) error {
	if q.Logs {
		return q.runLogs(ctx, p)
	}
	if err := q.onlyWithLogs(p); err != nil {
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
	endpoint, form := q.request(start, end)
	body, err := server.PostForm(ctx, endpoint, form)
	if err != nil {
		return err
	}
	var a client.Envelope
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("%s: the response is not of the Prometheus API: %w", q.URL, err)
	}
	for _, w := range append(a.Warnings, a.Infos...) {
		p.note("%s", w)
	}
	var d queryData
	if err := json.Unmarshal(a.Data, &d); err != nil {
		return fmt.Errorf("%s: the response is not of the Prometheus API: %w", q.URL, err)
	}
	if q.Stats {
		if err := printStats(p.stderr, d.Stats); err != nil {
			return err
		}
	}
	if q.Format == formatJSON {
		_, err = fmt.Fprintf(p.stdout, "%s\n", strings.TrimSpace(string(body)))
	} else {
		err = printResult(p.stdout, &d, q.Format)
	}
	if err != nil {
		return err
	}
	if d.empty() {
		e := emptiness{index: client.Index{Server: server, From: start, To: end}, now: now, untilNow: q.End == "", instant: q.instant, say: p.note}
		e.explainSamples(ctx, q.Expr)
	}
	return nil
}

// times returns the range of a range query, or twice the time of an instant query. since tells whether the
// flag --since is set.
func (q *queryCmd) times(now time.Time, since bool) (start, end time.Time, err error) {
	switch q.instant = !since && q.Start == "" && q.End == "" && q.Step == 0; {
	case q.instant && q.Time == "":
		return now, now, nil
	case q.instant:
		if start, err = parseTime(q.Time, now); err != nil {
			err = fmt.Errorf("--time: %w", err)
		}
		return start, start, err
	case q.Start == "" && !since:
		return start, end, errors.New("a range query needs --start or --since, such as --since 1h")
	case q.Time != "":
		return start, end, errors.New("--time is for instant queries, and --since, --start, --end and --step are for range queries; they exclude each other")
	}
	return q.bounds(now)
}

// request returns the path of the endpoint and its parameters.
func (q *queryCmd) request(start, end time.Time) (endpoint string, form url.Values) {
	form = url.Values{"query": {q.Expr}}
	if q.Stats {
		form.Set("stats", "all")
	}
	if q.instant {
		if q.Time != "" {
			form.Set("time", unixText(start))
		}
		return "api/v1/query", form
	}
	step := q.Step.Std()
	if step == 0 {
		step = max(time.Second, (end.Sub(start) / 60).Round(time.Second))
	}
	form.Set("start", unixText(start))
	form.Set("end", unixText(end))
	form.Set("step", strconv.FormatFloat(step.Seconds(), 'f', -1, 64))
	return "api/v1/query_range", form
}
