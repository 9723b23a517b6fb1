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

	"github.com/shaledb/shale/bench/proc"
	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/load/lines"
)

// countQuery is a named metric query over lines, in both languages. Its windows are as long as its step, so
// that those of LogQL, which slide, are those of VictoriaLogs, which do not overlap.
type countQuery struct {
	name, logql, logsql string
	// exploded is the query for a VictoriaLogs that has parsed lines of JSON when it received them. It is
	// empty if such a server does not have the lines as they were sent.
	exploded string
	window   time.Duration
	// ranked says that the result is the values of each time without their labels, since equal ones are many.
	ranked bool
	// tolerance is the relative difference that VictoriaLogs may have over a gigabyte. Its quantiles are
	// values that occur, and fewer lines have greater distances between their values.
	tolerance float64
}

// countQueries returns the queries for a load that has reported its needles. The paths of the load end in
// random numbers, so a quantile for each path would be of one line: it is grouped by method.
func countQueries(needles []lines.Needle) ([]countQuery, error) {
	if len(needles) == 0 {
		return nil, errors.New("the load has no needles to search for")
	}
	const all, jsonLines, logfmtLines = `{cluster="load-1"}`, `{cluster="load-1",format="json"}`, `{cluster="load-1",format="logfmt"}`
	const app = `{cluster="load-1",app="checkout"}`
	needle := strconv.Quote(needles[0].Text)
	return []countQuery{
		{
			name: "lines by level", window: time.Minute, logql: "sum by (level) (count_over_time(" + all + "[1m]))",
			logsql: all + " | stats by (level) count() n",
		},
		{
			name: "rate of a needle", window: time.Minute, logql: "sum(rate(" + all + " |= " + needle + " [1m]))",
			logsql: all + " " + needle + " | stats rate() n",
		},
		{
			name: "top 10 paths of one app, json", window: 5 * time.Minute, ranked: true, logql: "topk(10, sum by (path) (rate(" + app + " | json [5m])))",
			logsql:   app + " | unpack_json fields (path) | stats by (path) rate() n | sort by (n desc) limit 10",
			exploded: app + " | stats by (path) rate() n | sort by (n desc) limit 10",
		},
		{
			name: "p99 of durations by method, json", window: 5 * time.Minute, tolerance: 0.02,
			logql:    "quantile_over_time(0.99, " + jsonLines + " | json | unwrap duration_ms [5m]) by (method)",
			logsql:   jsonLines + " | unpack_json fields (method, duration_ms) | stats by (method) quantile(0.99, duration_ms) n",
			exploded: jsonLines + " | stats by (method) quantile(0.99, duration_ms) n",
		},
		{
			name: "lines by status, logfmt", window: time.Minute, logql: "sum by (status) (count_over_time(" + logfmtLines + " | logfmt [1m]))",
			logsql: logfmtLines + " | unpack_logfmt fields (status) | stats by (status) count() n",
		},
		{
			name: "bytes by app", window: time.Minute, logql: "sum by (app) (bytes_over_time(" + all + "[1m]))",
			logsql: all + " | stats by (app) sum_len(_msg) n",
		},
	}, nil
}

// path returns the path of a query over a range that begins and ends at whole windows.
func (q *countQuery) path(kind system.Kind, from, to time.Time) string {
	form := url.Values{"query": {q.logql}, "step": {strconv.Itoa(int(q.window.Seconds())) + "s"}}
	ns := func(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
	if kind == system.VictoriaLogs { // a window has the time of its begin, and the range has no end of its own
		form.Set("query", q.logsql)
		form.Set("start", ns(from))
		form.Set("end", ns(to.Add(-1)))
		return "/select/logsql/stats_query_range?" + form.Encode()
	}
	form.Set("start", ns(from.Add(q.window)))
	form.Set("end", ns(to))
	return "/loki/api/v1/query_range?" + form.Encode()
}

// logsCounts measures metric queries over lines that have been merged and shipped. Results of different
// systems must be equal.
func logsCounts(most int, exploded bool) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		start := t.agreed.start()
		end := start.Add(logsSpan)
		report, err := t.ingestLogs(ctx, func(srv *system.Server) []string {
			args := t.logs(srv, t.LogsGB, start, logsSpan)
			if exploded {
				target, _, _ := strings.Cut(srv.PushURL(), "?")
				args = append(args, "--url", target)
			}
			return args
		})
		if err != nil {
			return err
		}
		list, err := countQueries(report.Needles)
		if err != nil {
			return err
		}
		for _, q := range list[:most] {
			if exploded {
				if q.exploded == "" {
					continue
				}
				q.logsql = q.exploded
			}
			rec := t.aside(countLoad(t.rec.Load, q.name))
			if err := t.askCounts(ctx, &q, start, end, &rec); err != nil {
				rec.Error, rec.Values = q.name+": "+err.Error(), nil // a fast wrong result must not count
			}
			t.extra = append(t.extra, rec)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	}
}

func countLoad(load, name string) string { return "log-counts/" + load + "/" + name }

// askCounts sends a query after a restart with an empty page cache, and again and again. The first and the
// last result must agree with those of the other systems.
func (t *trial) askCounts(ctx context.Context, q *countQuery, from, to time.Time, rec *result.Record) error {
	if err := proc.DropPageCache(t.dir); err != nil {
		rec.Note("the page cache is not empty: %v", err)
	}
	path := q.path(t.sys.Kind, from, to)
	return t.with(ctx, logsMemory, func(srv *system.Server) error {
		answer, err := t.cold(ctx, srv, path, rec)
		if err != nil {
			return err
		}
		if err := t.agree(q, answer, rec); err != nil {
			return err
		}
		noteCounts(rec, t.sys.Kind, answer)
		took, err := t.repeat(ctx, srv, func(int) string { return path }, t.Queries, askPatience, rec)
		if err != nil {
			return err
		}
		rec.Set("p99-s", result.Quantile(took, 0.99))
		_, answer, err = timed(ctx, srv, path)
		if err != nil {
			return err
		}
		return t.agree(q, answer, rec)
	})
}

// agree compares a result with the first one to the same query, and keeps it if it is the first.
func (t *trial) agree(q *countQuery, answer []byte, rec *result.Record) error {
	m, err := readMatrix(answer)
	if err != nil {
		return err
	}
	if t.sys.Kind == system.VictoriaLogs {
		m.shift(q.window)
	}
	if q.ranked {
		m = m.ranks()
	}
	rec.Set("result-series", float64(len(m)))
	rec.Set("result-points", float64(m.points()))
	tolerance := 1e-9
	if t.sys.Kind == system.VictoriaLogs {
		tolerance = max(tolerance, q.tolerance/min(t.LogsGB*t.Scale, 1))
	}
	return t.agreed.with(q.name, t.sys.Name, m, tolerance)
}

// noteCounts records how much Shale has read for a result. Loki counts whole chunks, once a part of a query.
func noteCounts(rec *result.Record, kind system.Kind, answer []byte) {
	if kind != system.Shale {
		return
	}
	var a struct {
		Data struct {
			Stats struct {
				Summary struct {
					Lines float64 `json:"totalLinesProcessed"`
					Bytes float64 `json:"totalBytesProcessed"`
				} `json:"summary"`
				Querier struct {
					Store struct {
						Downloaded float64 `json:"totalChunksDownloaded"`
					} `json:"store"`
				} `json:"querier"`
			} `json:"stats"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		rec.Note("cannot parse the statistics: %v", err)
		return
	}
	rec.Set("scanned-lines", a.Data.Stats.Summary.Lines)
	rec.Set("scanned-B", a.Data.Stats.Summary.Bytes)
	rec.Set("pages-read", a.Data.Stats.Querier.Store.Downloaded)
}

// logCountReport makes a table of the metric queries of a load.
func logCountReport(load string) func([]result.Record) string {
	return func(records []result.Record) string {
		var names []string
		prefix := countLoad(load, "")
		for _, g := range result.Groups(records) {
			if name, ok := strings.CutPrefix(g.Load, prefix); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return asideReport(records, "query", names, func(name string) string { return countLoad(load, name) },
			[]string{"result-series", "result-points", "cold-s", "p50-s", "p99-s", "cpu-s", "rss-B", "scanned-lines", "scanned-B", "pages-read", "bucket-requests"})
	}
}

// agreement holds the first result of each query, whichever system gave it.
type agreement struct {
	began time.Time
	first map[string]firstResult
}

type firstResult struct {
	system string
	matrix matrix
}

// start returns the time of the first lines. It is that of all trials, since their results could not be
// compared otherwise.
func (a *agreement) start() time.Time {
	if a.began.IsZero() {
		a.began = time.Now().Add(-logsSpan - logsAgo).Truncate(10 * time.Minute)
	}
	return a.began
}

// with returns an error unless a result agrees with the first one to the query.
func (a *agreement) with(query, system string, m matrix, tolerance float64) error {
	first, ok := a.first[query]
	switch {
	case m.points() == 0:
		return errors.New("the result is empty")
	case !ok:
		if a.first == nil {
			a.first = make(map[string]firstResult)
		}
		a.first[query] = firstResult{system, m}
		return nil
	}
	if difference := m.difference(first.matrix, tolerance); difference != "" {
		return fmt.Errorf("the result is not that of %s: %s", first.system, difference)
	}
	return nil
}
