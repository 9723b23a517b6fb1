package main

import (
	"net/url"
	"strconv"
	"time"
)

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
