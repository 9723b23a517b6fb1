package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
)

// The sources of a query's data. Other servers have one of their own: the data as written and merged.
const (
	fromBuffers = "buffers"
	fromParts   = "parts"
	fromBucket  = "bucket"
)

// queries measures the named queries.
func queries(ctx context.Context, t *trial) error {
	// Stamps are whole minutes, so that every run has the same grid of steps.
	end := time.Now().Truncate(time.Minute)
	err := t.with(ctx, "", func(srv *system.Server) error {
		if err := t.sendLong(ctx, srv, end); err != nil {
			return err
		}
		if err := t.sendRated(ctx, srv, end); err != nil {
			return err
		}
		if t.sys.Kind == system.Shale {
			if err := t.askBuffers(ctx, srv, end); err != nil {
				return err
			}
		}
		if err := t.sendMany(ctx, srv, end); err != nil {
			return err
		}
		if err := t.warm(ctx, srv); err != nil {
			return err
		}
		return t.ask(ctx, srv, end, fromParts, "", t.Queries)
	})
	if err != nil || t.sys.Kind != system.Shale {
		return err
	}
	if _, err := t.shipAndCompact(ctx); err != nil {
		return err
	}
	if t.sys.Name == thisTree && t.Slow != "" {
		if err := t.slowDown("--request-delay", "20ms"); err != nil {
			return err
		}
	}
	return t.with(ctx, "", func(srv *system.Server) error { return t.ask(ctx, srv, end, fromBucket, "", t.Queries) })
}

func (t *trial) sendLong(ctx context.Context, srv *system.Server, end time.Time) error {
	_, err := t.load(ctx, 0, "remote-write", "--url", srv.WriteURL(), "--name", "long", "--targets", "1", "--metrics", "1", "--series", "1",
		"--value", "walk", "--rate", "0", "--rounds", strconv.Itoa(int(longSpan/time.Minute)), "--step", "1m", "--start", at(end.Add(-longSpan)))
	return err
}

// sendRated sends the jobs, each with its seed, a few at a time.
func (t *trial) sendRated(ctx context.Context, srv *system.Server, end time.Time) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for job := range t.scaled(queryJobs) {
		g.Go(func() error {
			one := &trial{settings: t.settings, sys: t.sys, rec: &result.Record{}, dir: t.dir}
			_, err := one.load(ctx, 0, "remote-write", "--url", srv.WriteURL(), "--name", "rated", "--seed", strconv.Itoa(ratedJobStart+job),
				"--targets", "10", "--metrics", "1", "--series", "10", "--value", "counter", "--rate", "0", "--concurrency", "1",
				"--rounds", strconv.Itoa(int(querySpan/queryStep)), "--step", queryStep.String(), "--start", at(end.Add(-querySpan)))
			return err
		})
	}
	return g.Wait()
}

func (t *trial) sendMany(ctx context.Context, srv *system.Server, end time.Time) error {
	_, err := t.load(ctx, 0, "remote-write", "--url", srv.WriteURL(), "--name", "many", "--targets", "1", "--metrics", "1",
		"--series", strconv.Itoa(t.scaled(manySeries)), "--rate", "0", "--rounds", "1", "--start", at(end.Add(-time.Minute)))
	return err
}

// askBuffers queries the data that has just been sent, and records how much of it is still in buffers.
func (t *trial) askBuffers(ctx context.Context, srv *system.Server, end time.Time) error {
	bytes, err := srv.Metric(ctx, "shale_head_row_buffer_bytes", "")
	if err != nil {
		return err
	}
	if bytes == 0 {
		t.rec.Note("the buffers were empty before the queries")
		return nil
	}
	return t.ask(ctx, srv, end, fromBuffers, "rated", min(t.Queries, 5))
}

// askPatience bounds the time for all repetitions of one query.
const askPatience = time.Minute

// ask sends all queries, or those over a set of data.
func (t *trial) ask(ctx context.Context, srv *system.Server, end time.Time, source, set string, times int) error {
	for _, q := range queryList() {
		if set != "" && q.set != set {
			continue
		}
		rec := result.Record{
			Load: queryLoad(q.name, source), System: t.rec.System, Version: t.rec.Version, Run: t.rec.Run, Began: time.Now(), Machine: t.rec.Machine,
			Scale: t.rec.Scale, Notes: slices.Clone(t.rec.Notes),
		}
		if err := t.askOne(ctx, srv, q.path(end), times, &rec); err != nil {
			rec.Error = err.Error()
		}
		t.extra = append(t.extra, rec)
		if err := errors.Join(ctx.Err(), srv.Alive()); err != nil {
			return err
		}
	}
	return nil
}

// queryLoad names a query over a source in records.
func queryLoad(name, source string) string { return "query/" + source + "/" + name }

// askOne sends a query once, with the caches as earlier queries have left them, and records the requests to
// the bucket. Then it repeats the query.
func (t *trial) askOne(ctx context.Context, srv *system.Server, path string, times int, rec *result.Record) error {
	before, err := t.bucketCounters(ctx, srv)
	if err != nil {
		return err
	}
	first, answer, err := timed(ctx, srv, path)
	if err != nil {
		return err
	}
	rec.Set("first-s", first)
	rec.Set("answer-B", float64(len(answer)))
	rec.Set("result-series", float64(elements(answer)))
	after, err := t.bucketCounters(ctx, srv)
	if err != nil {
		return err
	}
	if requests := after[0] - before[0]; requests > 0 {
		rec.Set("bucket-requests", requests)
		rec.Set("bucket-request-s", (after[1]-before[1])/requests)
	}
	took, err := t.repeat(ctx, srv, func(int) string { return path }, times, askPatience, rec)
	if err != nil {
		return err
	}
	rec.Set("p99-s", result.Quantile(took, 0.99))
	return nil
}

// repeat sends a query a number of times, but after three times only until patience ends. It records the
// median and the cost, and returns the seconds of each.
func (t *trial) repeat(ctx context.Context, srv *system.Server, path func(turn int) string, times int, patience time.Duration, rec *result.Record) (took []float64, err error) {
	used, err := srv.Usage()
	if err != nil {
		return nil, err
	}
	for began := time.Now(); len(took) < times && (len(took) < 3 || time.Since(began) < patience); {
		seconds, _, err := timed(ctx, srv, path(len(took)))
		if err != nil {
			return nil, err
		}
		took = append(took, seconds)
	}
	u, err := srv.Usage()
	if err != nil {
		return nil, err
	}
	rec.Set("p50-s", result.Quantile(took, 0.5))
	rec.Set("cpu-s", (u.CPU-used.CPU)/float64(len(took)))
	rec.Set("rss-B", float64(u.RSS))
	return took, nil
}

// timed sends a request and reads the response to its end.
func timed(ctx context.Context, srv *system.Server, path string) (seconds float64, answer []byte, err error) {
	asked := time.Now()
	code, answer, err := srv.Get(ctx, path)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", code, answer)
	}
	return time.Since(asked).Seconds(), answer, err
}

// bucketCounters returns the number of reads of objects in the bucket, and their time in seconds.
func (t *trial) bucketCounters(ctx context.Context, srv *system.Server) (c [2]float64, err error) {
	if t.sys.Kind != system.Shale {
		return c, nil
	}
	c[0], err = srv.Metric(ctx, "shale_bucket_request_seconds_count", `op="get`)
	if err != nil {
		return c, nil // nothing has been read from the bucket
	}
	c[1], err = srv.Metric(ctx, "shale_bucket_request_seconds_sum", `op="get`)
	return c, err
}

// elements counts the series of a result, or the values of a label.
func elements(answer []byte) int {
	var a struct {
		Data json.RawMessage `json:"data"`
	}
	var of struct {
		Result []json.RawMessage `json:"result"`
	}
	var values []json.RawMessage
	switch {
	case json.Unmarshal(answer, &a) != nil:
		return 0
	case json.Unmarshal(a.Data, &of) == nil:
		return len(of.Result)
	case json.Unmarshal(a.Data, &values) == nil:
		return len(values)
	}
	return 0
}

// The data of the queries. shale load makes all of it, so that every system has the same.
const (
	queryJobs     = 100           // of one metric, with 100 series each
	querySpan     = 2 * time.Hour // of them, a sample every 15 s
	queryStep     = 15 * time.Second
	longSpan      = 30 * 24 * time.Hour // of one series, a sample every minute
	manySeries    = 1_000_000           // of one metric, a sample of each
	ratedMetric   = "rated_mmmmm_0"
	longMetric    = "long_mmmmm_0"
	manyMetric    = "many_mmmmm_0"
	manyLabel     = "series_id"
	ratedJobStart = 1 // seeds of the jobs
)

// query is a named query.
type query struct {
	name string
	// set is the data of the query: rated, long or many.
	set  string
	path func(end time.Time) string
}

// queryList returns the queries. Their times end when the data does.
func queryList() []query {
	return []query{
		{"sum by job of rates, 10 k series, 2 h", "rated", overRange("sum by (job)(rate("+ratedMetric+"[5m]))", querySpan, time.Minute)},
		{"rates of one job of 100, 2 h", "rated", overRange("sum(rate("+ratedMetric+`{job="shale-load-42"}[5m]))`, querySpan, time.Minute)},
		{"one series, 30 d", "long", overRange("avg_over_time("+longMetric+"[1h])", longSpan, time.Hour)},
		{"label values, 1 M", "many", func(end time.Time) string {
			return "/api/v1/label/" + manyLabel + "/values?" + url.Values{
				"match[]": {manyMetric}, "start": {unix(end.Add(-time.Hour))}, "end": {unix(end)},
			}.Encode()
		}},
		{"label values of few among 1 M series", "many", func(end time.Time) string {
			return "/api/v1/label/job/values?" + url.Values{
				"match[]": {manyMetric}, "start": {unix(end.Add(-time.Hour))}, "end": {unix(end)},
			}.Encode()
		}},
		{"count of 1 M series", "many", instant("count(" + manyMetric + ")")},
		{"regex on a label with 1 M values", "many", instant("count(" + manyMetric + "{" + manyLabel + `=~".*77.*1"})`)},
	}
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func overRange(expr string, span, step time.Duration) func(time.Time) string {
	return func(end time.Time) string {
		return "/api/v1/query_range?" + url.Values{
			"query": {expr}, "start": {unix(end.Add(-span))}, "end": {unix(end)}, "step": {strconv.Itoa(int(step.Seconds()))},
		}.Encode()
	}
}

func instant(expr string) func(time.Time) string {
	return func(end time.Time) string {
		return "/api/v1/query?" + url.Values{"query": {expr}, "time": {unix(end)}}.Encode()
	}
}
