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
}

// Help teaches the command by examples.
func (*queryCmd) Help() string {
	return `Show the latest value of every series of a metric:

    shale query up

Show requests per second by job over the last hour, one point per minute, as CSV:

    shale query 'sum by (job) (rate(http_requests_total[5m]))' --since 1h --step 1m --format csv

Show raw samples of a Graphite path (a name with dots needs quotes and braces):

    shale query '{"web1.load.load.shortterm"}[10m]' --time 2026-03-01T12:00:00Z

Show the newest lines of one app that contain "timeout", lines only:

    shale query --logs '{app="checkout"} |= "timeout"' -o raw

Show the failed requests of a day, oldest first, one JSON object per line:

    shale query --logs '{app="checkout"} | json | status >= 500' --since 1d --forward --limit 0 -o jsonl`
}

// queryData is the data of a query's response.
type queryData struct {
	ResultType string          `json:"resultType"`
	Result     json.RawMessage `json:"result"`
	Stats      json.RawMessage `json:"stats"`
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
	endpoint, form, err := q.request(time.Now(), slices.Contains(p.flagsSet, "since"))
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := q.deadline(ctx)
	defer cancel()
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
	if q.Format == "json" {
		_, err := fmt.Fprintf(p.stdout, "%s\n", strings.TrimSpace(string(body)))
		return err
	}
	return printResult(p.stdout, &d, q.Format)
}

// request returns the path of the endpoint and its parameters. since tells that --since is set.
func (q *queryCmd) request(now time.Time, since bool) (endpoint string, form url.Values, err error) {
	form = url.Values{"query": {q.Expr}}
	if q.Stats {
		form.Set("stats", "all")
	}
	if !since && q.Start == "" && q.End == "" && q.Step == 0 {
		if q.Time != "" {
			at, err := parseTime(q.Time, now)
			if err != nil {
				return "", nil, fmt.Errorf("--time: %w", err)
			}
			form.Set("time", unixText(at))
		}
		return "api/v1/query", form, nil
	}
	switch {
	case q.Start == "" && !since:
		return "", nil, errors.New("a range query needs --start or --since, such as --since 1h")
	case q.Time != "":
		return "", nil, errors.New("--time is for instant queries, and --since, --start, --end and --step are for range queries; they exclude each other")
	}
	start, end, err := q.bounds(now)
	if err != nil {
		return "", nil, err
	}
	step := q.Step.Std()
	if step == 0 {
		step = max(time.Second, (end.Sub(start) / 60).Round(time.Second))
	}
	form.Set("start", unixText(start))
	form.Set("end", unixText(end))
	form.Set("step", strconv.FormatFloat(step.Seconds(), 'f', -1, 64))
	return "api/v1/query_range", form, nil
}
