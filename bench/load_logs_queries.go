package main

import (
	"bytes"
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

// logQuery is a named query of lines, in both languages.
type logQuery struct {
	name, logql, logsql string
}

// turnMark is replaced in a query by 16 digits of its turn, like the end of a needle, so that each query is
// different.
const turnMark = "TURN"

// logQueries returns the queries for a load that has reported its needles.
func logQueries(needles []lines.Needle) ([]logQuery, error) {
	if len(needles) != 3 || len(needles[0].Apps) == 0 {
		return nil, errors.New("the load has no needles to search for")
	}
	rare, code, absent, app := needles[0].Text, needles[1].Text, needles[2].Text, needles[0].Apps[0]
	other := absent[:max(0, len(absent)-16)] + turnMark
	all, one := `{cluster="load-1"}`, fmt.Sprintf(`{cluster="load-1",app=%q}`, app)
	const lazy = `lock in time.*"status":50[0-9].*"duration_ms":[0-9]{3}[.]`
	return []logQuery{
		{"newest 100 of all", all, all},
		{"newest 100 of one app", one, one},
		{"needle, all", all + fmt.Sprintf(" |= %q", rare), all + fmt.Sprintf(" %q", rare)},
		{"needle, one app", one + fmt.Sprintf(" |= %q", rare), one + fmt.Sprintf(" %q", rare)},
		{"needle that is not there", all + fmt.Sprintf(" |= %q", absent), all + fmt.Sprintf(" %q", absent)},
		{"another needle each time", all + fmt.Sprintf(" |= %q", other), all + fmt.Sprintf(" %q", other)},
		{"regex, 100 hits", all + " |~ `" + lazy + "`", all + " ~`" + lazy + "`"},
		{"regex, 23 hits", all + fmt.Sprintf(" |~ %q", code), all + fmt.Sprintf(" ~%q", code)},
		{"json, status >= 500, newest 100", `{cluster="load-1",format="json"} | json | status >= 500`, `{cluster="load-1",format="json"} | unpack_json fields (status) | filter status:>=500`},
	}, nil
}

// path returns the path of a query for the newest 100 lines, in a turn.
func (q *logQuery) path(kind system.Kind, from, to time.Time, turn int) string {
	in := func(query string) string {
		return strings.ReplaceAll(query, turnMark, fmt.Sprintf("%016x", uint64(turn+1)*0x9e3779b97f4a7c15))
	}
	form := url.Values{
		"query": {in(q.logql)}, "start": {strconv.FormatInt(from.UnixNano(), 10)}, "end": {strconv.FormatInt(to.UnixNano(), 10)}, "limit": {"100"},
		"direction": {"backward"},
	}
	if kind == system.VictoriaLogs {
		form.Set("query", in(q.logsql))
		form.Del("direction")
		return "/select/logsql/query?" + form.Encode()
	}
	return "/loki/api/v1/query_range?" + form.Encode()
}

// logsQueries measures queries of lines that have been merged and shipped.
func logsQueries(ctx context.Context, t *trial) error {
	start := time.Now().Add(-logsSpan - logsAgo).Truncate(time.Minute)
	end := start.Add(logsSpan)
	report, err := t.ingestLogs(ctx, func(srv *system.Server) []string { return t.logs(srv, t.LogsGB, start, logsSpan) })
	if err != nil {
		return err
	}
	list, err := logQueries(report.Needles)
	if err != nil {
		return err
	}
	for _, q := range list {
		rec := t.aside(logQueryLoad(q.name))
		if err := t.askCold(ctx, func(turn int) string { return q.path(t.sys.Kind, start, end, turn) }, &rec); err != nil {
			rec.Error = err.Error()
		}
		t.extra = append(t.extra, rec)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func logQueryLoad(name string) string { return "log-query/" + name }

// askCold sends a query after a restart with an empty page cache, records how much that has read, and repeats
// the query.
func (t *trial) askCold(ctx context.Context, path func(turn int) string, rec *result.Record) error {
	if err := proc.DropPageCache(t.dir); err != nil {
		rec.Note("the page cache is not empty: %v", err)
	}
	return t.with(ctx, logsMemory, func(srv *system.Server) error {
		answer, err := t.cold(ctx, srv, path(0), rec)
		if err != nil {
			return err
		}
		noteAnswer(rec, t.sys.Kind, answer)
		_, err = t.repeat(ctx, srv, func(turn int) string { return path(1 + turn) }, t.Queries, askPatience, rec)
		return err
	})
}

// cold sends the first query to a server, and records its time and the requests to the bucket.
func (t *trial) cold(ctx context.Context, srv *system.Server, path string, rec *result.Record) (answer []byte, err error) {
	before, err := t.bucketCounters(ctx, srv)
	if err != nil {
		return nil, err
	}
	seconds, answer, err := timed(ctx, srv, path)
	if err != nil {
		return nil, err
	}
	after, err := t.bucketCounters(ctx, srv)
	if err != nil {
		return nil, err
	}
	rec.Set("cold-s", seconds)
	if t.sys.Kind == system.Shale {
		rec.Set("bucket-requests", after[0]-before[0])
	}
	return answer, nil
}

// noteAnswer records the lines of a response and, from its statistics, how much was read for them.
func noteAnswer(rec *result.Record, kind system.Kind, answer []byte) {
	if kind == system.VictoriaLogs {
		rec.Set("result-lines", float64(bytes.Count(answer, []byte{'\n'})))
		return
	}
	var a struct {
		Data struct {
			Result []struct {
				Values []json.RawMessage `json:"values"`
			} `json:"result"`
			Stats struct {
				Summary struct {
					Bytes float64 `json:"totalBytesProcessed"`
				} `json:"summary"`
				Querier struct {
					Store struct {
						Downloaded float64 `json:"totalChunksDownloaded"`
					} `json:"store"`
				} `json:"querier"`
				Index struct {
					Total float64 `json:"totalChunks"`
					Left  float64 `json:"postFilterChunks"`
				} `json:"index"`
			} `json:"stats"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		rec.Note("cannot parse the response: %v", err)
		return
	}
	lines := 0
	for _, r := range a.Data.Result {
		lines += len(r.Values)
	}
	s := &a.Data.Stats
	rec.Set("result-lines", float64(lines))
	rec.Set("scanned-B", s.Summary.Bytes)
	if kind == system.Shale { // those of Loki count whole chunks
		rec.Set("pages-read", s.Querier.Store.Downloaded)
		rec.Set("pages-skipped", s.Index.Total-s.Index.Left)
	}
}

// logQueryReport makes a table of the queries.
func logQueryReport(records []result.Record) string {
	var names []string
	for _, g := range result.Groups(records) {
		if name, ok := strings.CutPrefix(g.Load, logQueryLoad("")); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return asideReport(records, "query", names, logQueryLoad,
		[]string{"result-lines", "cold-s", "p50-s", "cpu-s", "rss-B", "scanned-B", "pages-read", "pages-skipped", "bucket-requests"})
}

// asideReport makes a table of the records in addition to those of a load: a line for each name and system.
func asideReport(records []result.Record, what string, names []string, load func(string) string, columns []string) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "| %s | system |", what)
	for _, c := range columns {
		fmt.Fprintf(&sb, " %s |", result.Title(c))
	}
	sb.WriteString("\n|---|---|" + strings.Repeat("---|", len(columns)) + "\n")
	var all []*result.Group
	for _, name := range names {
		for _, g := range groupsOf(records, load(name)) {
			all = append(all, g)
			fmt.Fprintf(&sb, "| %s | %s |", name, g.System)
			for _, c := range columns {
				fmt.Fprintf(&sb, " %s |", result.Cell(c, g.Stat(c)))
			}
			sb.WriteString("\n")
		}
	}
	if len(all) == 0 {
		return ""
	}
	if remarks := result.Remarks(all); remarks != "" {
		sb.WriteString("\n" + remarks)
	}
	return sb.String()
}
