package fronts

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// request is a request of Grafana's data source or of Logs Drilldown, without its times.
type request struct {
	name, path string
	form       url.Values
	steps      int64 // of the range at most; 0: the request has none
}

// interval stands for the step, as in Grafana.
const interval = "$__auto"

// step returns the step of a range with a number of steps at most, among those that Grafana uses.
func step(span time.Duration, steps int64) time.Duration {
	for _, s := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	} {
		if int64(span/s) <= steps {
			return s
		}
	}
	return 24 * time.Hour
}

// requests returns what is measured, for a selector of all lines and one of some.
func requests(all, some string) []request {
	q := func(query string, more ...string) url.Values {
		v := url.Values{"query": {query}}
		for i := 0; i+1 < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	return []request{
		{"newest 1,000 lines", "query_range", q(some, "limit", "1000"), 0},
		{"newest 100 lines with a word", "query_range", q(some+` |= "error"`, "limit", "100"), 0},
		{"lines that nothing matches", "query_range", q(all+` |= "no such words"`, "limit", "100"), 0},
		{"sum(count_over_time)", "query_range", q("sum(count_over_time(" + some + "[5m]))"), 100},
		{"rate by app", "query_range", q("sum by (app) (rate(" + all + "[" + interval + "]))"), 100},
		{"labels", "labels", q(all), 0},
		{"values of a label", "label/app/values", q(all), 0},
		{"series", "series", url.Values{"match[]": {some}}, 0},
		{"stats", "index/stats", q(all), 0},
		{"volume", "index/volume", q(all, "targetLabels", "app", "limit", "1000"), 0},
		{"volume_range", "index/volume_range", q(all, "targetLabels", "app", "limit", "1000"), 100},
		{"detected_labels", "detected_labels", q(all), 0},
		{"detected_fields", "detected_fields", q(some, "line_limit", "1000", "limit", "1000"), 0},
		{"patterns", "patterns", q(some), 100},
	}
}

// target returns the path of the request with its parameters.
func (r *request) target(from, to time.Time) string {
	form := url.Values{"start": {strconv.FormatInt(from.UnixNano(), 10)}, "end": {strconv.FormatInt(to.UnixNano(), 10)}}
	width := strconv.FormatInt(int64(step(to.Sub(from), max(1, r.steps)).Seconds()), 10) + "s"
	for name, values := range r.form {
		form.Set(name, strings.ReplaceAll(values[0], interval, width))
	}
	if r.steps > 0 {
		form.Set("step", width)
	}
	return "/loki/api/v1/" + r.path + "?" + form.Encode()
}
