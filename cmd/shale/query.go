package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
)

type queryCmd struct {
	Expr string `arg:"" name:"query" help:"The query: PromQL, or with --logs LogQL."`

	URL     string          `name:"url" default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to query; any with the Prometheus API or, with --logs, the Loki API."`
	Time    string          `placeholder:"TIME" help:"Time of an instant query: RFC 3339, Unix seconds, now, or relative such as -1h. Default: now."`
	Start   string          `placeholder:"TIME" help:"Start of a range query, written like --time."`
	End     string          `placeholder:"TIME" help:"End of a range query. Default: now."`
	Step    config.Duration `placeholder:"TIME" help:"Step of a range query. Default: a 60th of the range, at least 1s."`
	Format  string          `short:"o" enum:"table,json,csv,raw,jsonl" default:"table" placeholder:"FORMAT" help:"Output: table, json (the unchanged response) or csv. With --logs: table (time, labels, line), raw (lines only), jsonl or json."`
	Tenant  string          `placeholder:"NAME" help:"Tenant to query (X-Scope-OrgID)."`
	Stats   bool            `help:"Print the cost of the query on standard error."`
	Timeout config.Duration `default:"2m" placeholder:"TIME" help:"How long to wait for the response."`

	Logs    bool            `help:"Query log lines with LogQL. Prints the newest lines of the last hour, newest first."`
	Since   config.Duration `default:"1h" placeholder:"TIME" help:"With --logs: how far to look back without --start."`
	Limit   int             `default:"100" placeholder:"N" help:"With --logs: maximum number of lines; 0: all."`
	Forward bool            `help:"With --logs: print the oldest lines, oldest first."`
}

// Help teaches the command by examples.
func (*queryCmd) Help() string {
	return `Show the latest value of every series of a metric:

    shale query up

Show requests per second by job over the last hour, one point per minute, as CSV:

    shale query 'sum by (job) (rate(http_requests_total[5m]))' --start -1h --step 1m --format csv

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
	server, err := newServer(q.URL, q.Tenant)
	if err != nil {
		return usageError{err}
	}
	endpoint, form, err := q.request(time.Now())
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
		fmt.Fprintf(p.stderr, "shale: note: %s\n", w)
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

// request returns the path of the endpoint and its parameters.
func (q *queryCmd) request(now time.Time) (endpoint string, form url.Values, err error) {
	form = url.Values{"query": {q.Expr}}
	if q.Stats {
		form.Set("stats", "all")
	}
	isRange := q.Start != "" || q.End != "" || q.Step != 0
	if !isRange {
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
	case q.Start == "":
		return "", nil, errors.New("a range query needs --start, such as --start -1h")
	case q.Time != "":
		return "", nil, errors.New("--time is for instant queries and --start, --end and --step are for range queries; they exclude each other")
	}
	start, err := parseTime(q.Start, now)
	if err != nil {
		return "", nil, fmt.Errorf("--start: %w", err)
	}
	end := now
	if q.End != "" {
		if end, err = parseTime(q.End, now); err != nil {
			return "", nil, fmt.Errorf("--end: %w", err)
		}
	}
	if end.Before(start) {
		return "", nil, fmt.Errorf("--end (%s) is before --start (%s)", end.Format(time.RFC3339), start.Format(time.RFC3339))
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

// newServer returns the server that the flags --url and --tenant name.
func newServer(text, tenant string) (*client.Server, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--url: %q is not a URL such as http://127.0.0.1:9480", text)
	}
	return &client.Server{URL: text, Tenant: tenant, Header: http.Header{"User-Agent": {"shale/" + version}}}, nil
}

// deadline bounds all requests of a query by --timeout.
func (q *queryCmd) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, q.Timeout.Std(), fmt.Errorf("no response within %s (--timeout)", q.Timeout))
}

// parseTime reads RFC 3339, Unix seconds, "now", or a duration before now ("-1h").
func parseTime(s string, now time.Time) (time.Time, error) {
	if s == "now" {
		return now, nil
	}
	if ago, ok := strings.CutPrefix(s, "-"); ok {
		if d, err := config.ParseDuration(ago); err == nil {
			return now.Add(-d), nil
		}
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if sec, err := strconv.ParseFloat(s, 64); err == nil && sec > -1e11 && sec < 1e11 {
		return time.UnixMilli(int64(math.Round(sec * 1000))), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write 2026-03-01T12:00:00Z, Unix seconds, now, or -1h", s)
}

func unixText(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}
