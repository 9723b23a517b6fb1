package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
)

// streamsSpan is the time over which lines of many streams are spread.
const streamsSpan = 7 * 24 * time.Hour

// logsStreams measures the cost of many streams, and the time of queries for their labels over several
// ranges.
func logsStreams(streams, perNode, pushLines int) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		end := time.Now().Add(-logsAgo).Truncate(time.Minute)
		n := t.scaled(streams)
		_, err := t.ingestLogs(ctx, func(srv *system.Server) []string {
			return t.logs(srv, t.LogsGB, end.Add(-streamsSpan), streamsSpan, "--streams", strconv.Itoa(n), "--per-node", strconv.Itoa(perNode), "--push-lines", strconv.Itoa(pushLines))
		})
		if err != nil {
			return err
		}
		return t.with(ctx, logsMemory, func(srv *system.Server) error {
			for _, q := range labelQueries() {
				for _, span := range labelSpans() {
					rec := t.aside(labelLoad(t.rec.Load, q.name+", "+span.name))
					if err := t.askLabels(ctx, srv, func(int) string { return q.path(t.sys.Kind, end.Add(-span.length), end) }, &rec); err != nil {
						rec.Error = err.Error()
					}
					t.extra = append(t.extra, rec)
					if err := ctx.Err(); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

func labelLoad(load, name string) string { return "log-labels/" + load + "/" + name }

// labelQuery is a query for labels. VictoriaLogs has its own paths for them.
type labelQuery struct {
	name, loki, victoria string
	form                 url.Values // without times
}

func labelQueries() []labelQuery {
	const one = `{cluster="load-1",app="checkout"}`
	return []labelQuery{
		{"names of labels", "/loki/api/v1/labels", "/select/logsql/stream_field_names", nil},
		{"values of namespace", "/loki/api/v1/label/namespace/values", "/select/logsql/stream_field_values", url.Values{"field": {"namespace"}}},
		{"values of pod, one app", "/loki/api/v1/label/pod/values", "/select/logsql/stream_field_values", url.Values{"field": {"pod"}, "query": {one}}},
		{"series of one app", "/loki/api/v1/series", "/select/logsql/streams", url.Values{"match[]": {one}, "query": {one}}},
	}
}

func (q *labelQuery) path(kind system.Kind, from, to time.Time) string {
	form := url.Values{"start": {strconv.FormatInt(from.UnixNano(), 10)}, "end": {strconv.FormatInt(to.UnixNano(), 10)}}
	for name, values := range q.form {
		form[name] = values
	}
	if kind != system.VictoriaLogs {
		form.Del("field")
		return q.loki + "?" + form.Encode()
	}
	if form.Del("match[]"); !form.Has("query") {
		form.Set("query", "*")
	}
	return q.victoria + "?" + form.Encode()
}

type labelSpan struct {
	name   string
	length time.Duration
}

func labelSpans() []labelSpan {
	return []labelSpan{{"1 h", time.Hour}, {"24 h", 24 * time.Hour}, {"7 d", streamsSpan}}
}

// labelAsks is the number of times that a label query is sent: the p99 of fewer would be the maximum.
const labelAsks = 200

// askLabels measures a request whose path may differ from one time to the next.
func (t *trial) askLabels(ctx context.Context, srv *system.Server, path func(i int) string, rec *result.Record) error {
	first, answer, err := timed(ctx, srv, path(0))
	if err != nil {
		return err
	}
	rec.Set("first-s", first)
	rec.Set("answer-B", float64(len(answer)))
	took, err := t.repeat(ctx, srv, func(i int) string { return path(i + 1) }, labelAsks, askPatience/2, rec)
	if err != nil {
		return err
	}
	if len(took) < labelAsks {
		rec.Note("sent %d times only", len(took))
	}
	rec.Set("p99-s", result.Quantile(took, 0.99))
	return nil
}

// logLabelReport makes a table of the label queries of a load.
func logLabelReport(load string) func([]result.Record) string {
	return func(records []result.Record) string {
		var names []string
		for _, q := range labelQueries() {
			for _, span := range labelSpans() {
				names = append(names, fmt.Sprintf("%s, %s", q.name, span.name))
			}
		}
		return asideReport(records, "query", names, func(name string) string { return labelLoad(load, name) },
			[]string{"answer-B", "first-s", "p50-s", "p99-s", "cpu-s", "rss-B"})
	}
}
