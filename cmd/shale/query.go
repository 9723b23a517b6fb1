package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/terminal"
)

type queryCmd struct {
	Expr string `arg:"" name:"query" help:"The query: PromQL, or with --logs LogQL."`

	serverFlags
	period
	Time   string          `placeholder:"TIME" help:"Time of an instant query, written like --start. Default: now."`
	Step   config.Duration `placeholder:"TIME" help:"Step of a range query. Default: a 60th of the range, for a plot one column; at least 1s."`
	Format string          `short:"o" enum:"table,json,csv,plot,raw,jsonl" default:"table" placeholder:"FORMAT" help:"Output of numbers: table, json (the unchanged response), csv, or plot (draws a range query). Output of log lines: table (time, labels, line), raw (lines only), jsonl or json."`
	Stats  bool            `help:"Print the cost of the query on standard error."`

	Explain bool `help:"Show what the query would read from the bucket, in requests, bytes, seconds and dollars, without running it."`

	Logs    bool `help:"Query logs with LogQL. A log query prints the newest lines of the last hour, newest first; a metric query prints numbers."`
	Limit   int  `default:"100" placeholder:"N" help:"Maximum number of log lines; 0: all."`
	Forward bool `help:"Print the oldest log lines, oldest first."`

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

Show how many lines each app logged at each level in the last hour:

    shale query --logs 'sum by (app, level) (count_over_time({app=~".+"}[1h]))'

Draw the errors per second of the last six hours, one line per app:

    shale query --logs 'sum by (app) (rate({level="error"}[5m]))' --since 6h -o plot

Show what a query over 30 days would cost, before it runs:

    shale query --explain 'sum(rate(http_requests_total[5m]))' --since 30d

A query for numbers, of PromQL or of LogQL, is an instant query, unless --since, --start, --end or --step is given; a plot is of
the last hour, unless these say otherwise. Times are dates, local times, RFC 3339, Unix seconds or milliseconds, now, now-1h or
-1h. Tables and plots show times in UTC, and tables write control characters as \n or \x1b. A plot has colours on a terminal,
unless NO_COLOR is set, and is ASCII if the locale is not UTF-8.`
}

// Run queries and prints.
func (q *queryCmd) Run(ctx context.Context, p *process) error {
	if q.Explain {
		return q.runExplain(ctx, p)
	}
	if q.Logs && !q.counts() {
		return q.runLines(ctx, p)
	}
	return q.runNumbers(ctx, p)
}

// counts reports whether a query of LogQL gives numbers. One with a mistake is for the server to refuse, so
// it is taken for what its flags are for.
func (q *queryCmd) counts() bool {
	tree, err := syntax.Parse(q.Expr)
	if err != nil {
		return q.Time != "" || q.Step != 0 || q.Format == formatCSV || q.Format == formatPlot
	}
	_, metric := tree.(syntax.MetricExpr)
	return metric
}

// emptiness returns what explains an empty result, at one time or in a range.
func (q *queryCmd) emptiness(p *process, server *client.Server, now, start, end time.Time) *emptiness {
	return &emptiness{
		index: client.Index{Server: server, Logs: q.Logs, From: start, To: end}, now: now, untilNow: q.End == "", instant: q.instant, say: p.note,
	}
}

// serverFlags names the server that a command queries.
type serverFlags struct {
	URL           string `name:"url" default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to query; any with the Prometheus API or, with --logs, the Loki API."`
	Tenant        string `placeholder:"NAME" help:"Tenant to query (X-Scope-OrgID)."`
	client.Access `embed:""`
	Timeout       config.Duration `default:"2m" placeholder:"TIME" help:"How long to wait for the response."`
}

func (f *serverFlags) server() (*client.Server, error) { return newServer(f.URL, f.Tenant, &f.Access) }

// deadline bounds all requests of a command by --timeout.
func (f *serverFlags) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, f.Timeout.Std(), fmt.Errorf("no response within %s (--timeout)", f.Timeout))
}

// newServer returns the server that the flags --url and --tenant name, with what lets this command in.
func newServer(text, tenant string, access *client.Access) (*client.Server, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--url: %q is not a URL such as http://127.0.0.1:9480", text)
	}
	server := &client.Server{URL: text, Tenant: tenant, Header: http.Header{"User-Agent": {"shale/" + version}}}
	return server, server.Allow(access)
}

// onlyForBills refuses flags that a bill has no use for.
func (q *queryCmd) onlyForBills() error {
	switch {
	case q.Format != formatTable && q.Format != formatJSON:
		return fmt.Errorf("--format %s is for results; with --explain use table or json", q.Format)
	case q.Stats:
		return errors.New("--stats is for queries that run; --explain runs none")
	}
	return nil
}

// runExplain asks for the bill of the query and prints it.
func (q *queryCmd) runExplain(ctx context.Context, p *process) error {
	if err := q.onlyForBills(); err != nil {
		return usageError{err}
	}
	server, err := q.server()
	if err != nil {
		return usageError{err}
	}
	endpoint, form, err := q.billed(p, time.Now())
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := q.deadline(ctx)
	defer cancel()
	body, bill, err := server.Explain(ctx, endpoint, form)
	if err != nil {
		return err
	}
	if q.Format == formatJSON {
		_, err = fmt.Fprintf(p.stdout, "%s\n", strings.TrimSpace(string(body)))
		return err
	}
	return printBill(p, bill)
}

// billed returns the endpoint and the parameters of the query.
func (q *queryCmd) billed(p *process, now time.Time) (endpoint string, form url.Values, err error) {
	if q.Logs && !q.counts() {
		if err := q.onlyForLines(); err != nil {
			return "", nil, err
		}
		start, end, err := q.bounds(now)
		if err != nil {
			return "", nil, err
		}
		pages := &client.Pages{Expr: q.Expr, Forward: q.Forward, From: start.UnixNano(), To: end.UnixNano(), Left: q.Limit}
		return "loki/api/v1/query_range", pages.Form(), nil
	}
	if err := q.onlyForNumbers(p); err != nil {
		return "", nil, err
	}
	start, end, err := q.times(now, slices.Contains(p.flagsSet, "since"))
	if err != nil {
		return "", nil, err
	}
	d := q.dialect()
	endpoint, form = q.request(&d, start, end, q.stepOf(start, end, 60))
	return endpoint, form, nil
}

// printBill prints a bill as a table, with a sentence about what it follows from.
func printBill(p *process, b *client.Bill) error {
	row := func(name string, r *client.Priced) []string {
		return []string{name, strconv.FormatInt(r.Requests, 10), strconv.FormatInt(r.Bytes, 10),
			strconv.FormatFloat(r.Seconds, 'g', 3, 64), strconv.FormatFloat(r.Dollars, 'g', 3, 64)}
	}
	err := terminal.Table(p.stdout, [][]string{
		{"", "REQUESTS", "BYTES", "SECONDS", "DOLLARS"},
		row("index, read now", &b.Index), row("the query, at least", &b.Least),
		row("all its pages, together", &b.Likely), row("the query, at most", &b.Most),
	})
	if err != nil {
		return err
	}
	cached := 100 * float64(b.PagesCached) / float64(max(1, b.Pages))
	if _, err = fmt.Fprintf(p.stdout, "\nblocks: %d; pages: at most %d, %.0f %% of them cached\n", b.Blocks, b.Pages, cached); err != nil {
		return err
	}
	if b.EndsEarly {
		p.note("the query ends as soon as it has enough lines, which may be long before it has read the most")
	}
	how := "measured"
	if !b.Assumed.Measured {
		how = "assumed: no query has read from the bucket yet"
	}
	p.note("seconds follow from %.3g s for a request (%s), %d at a time, shared by %s", b.Assumed.RequestSeconds, how, b.Assumed.Parallel,
		english.Plural(int(b.Assumed.Queries), "running query", "running queries"))
	return nil
}
