package renders

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// board is requests that users send together, and wait for together.
type board struct {
	name    string
	targets []string
	span    time.Duration
}

// boards returns what is measured. Each panel of the dashboard draws its own ten series, with one of ten
// expressions.
func boards() []board {
	expressions := []string{
		"aliasByNode(%s,1)", "sumSeries(%s)", "averageSeries(%s)", "alias(maxSeries(%s),'max')", "movingAverage(%s,10)",
		"nonNegativeDerivative(%s)", "groupByNode(%s,1,'average')", "highestAverage(%s,3)", "asPercent(%s)", "summarize(%s,'1h','avg')",
	}
	dashboard := make([]string, panels)
	for p := range dashboard {
		dashboard[p] = fmt.Sprintf(expressions[p%len(expressions)], "servers.*.app.m"+two(p))
	}
	return []board{
		{"dashboard of 100 panels, 24 h", dashboard, 24 * time.Hour},
		{"dashboard of 100 panels, 30 d", dashboard, 30 * 24 * time.Hour},
		{"sum of 10,000 series, 24 h", []string{"sumSeries(wide.*.*.load)"}, 24 * time.Hour},
		{"one series, 1 year", []string{"year.requests"}, 365 * 24 * time.Hour},
	}
}

// path returns the request of a target, as Grafana sends it.
func path(target string, until time.Time, span time.Duration) string {
	return "/render?" + url.Values{
		"target": {target}, "format": {"json"}, "maxDataPoints": {"1000"}, "noCache": {"1"},
		"storage_step": {"60s"}, // VictoriaMetrics does not know the distance of points
		"from":         {strconv.FormatInt(until.Add(-span).Unix(), 10)}, "until": {strconv.FormatInt(until.Unix(), 10)},
	}.Encode()
}
