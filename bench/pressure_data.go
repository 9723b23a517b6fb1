package main

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
)

// The data of the commands memory and mix: an hour that ends when it is sent.
const (
	pressureSpan       = time.Hour
	pressureFloats     = "floats_mmmmm_0"     // 10,000 counters, a sample every 15 s
	pressureHistograms = "histograms_mmmmm_0" // 1,000 native histograms, a sample a minute
	pressureLineMB     = 200
)

// pressure is a server under the load of many queries.
type pressure struct {
	trial
	srv *system.Server
	end time.Time
}

// startPressure starts a server with a budget of memory and fills it.
func startPressure(ctx context.Context, s settings, sys system.System, dir, memory string) (*pressure, error) {
	p := &pressure{trial: trial{settings: s, sys: sys, rec: &result.Record{}, dir: dir}, end: time.Now().Truncate(time.Minute)}
	var err error
	if p.srv, err = p.start(ctx, memory); err != nil {
		return nil, err
	}
	if err := p.fill(ctx); err != nil {
		return nil, errors.Join(err, p.srv.Stop())
	}
	return p, nil
}

func (p *pressure) fill(ctx context.Context) error {
	rounds := func(step time.Duration) []string {
		return []string{"--rate", "0", "--rounds", strconv.Itoa(int(pressureSpan / step)), "--step", step.String(), "--start", at(p.end.Add(-pressureSpan)), "--metrics", "1", "--series", "100"}
	}
	loads := [][]string{
		append([]string{"remote-write", "--url", p.srv.WriteURL(), "--name", "floats", "--value", "counter", "--targets", strconv.Itoa(p.scaled(100))}, rounds(15*time.Second)...),
		append([]string{"remote-write", "--url", p.srv.WriteURL(), "--name", "histograms", "--value", "histogram", "--protocol", "v2", "--targets", strconv.Itoa(p.scaled(10))}, rounds(time.Minute)...),
	}
	if p.sys.Speaks("logs") {
		loads = append(loads, p.logs(p.srv, pressureLineMB/1000.0, p.end.Add(-pressureSpan), pressureSpan))
	}
	for _, args := range loads {
		if _, err := p.load(ctx, 0, args...); err != nil {
			return err
		}
	}
	return nil
}

// storm creates series, a hundred thousand after the other as fast as they are taken, until the context ends.
func (p *pressure) storm(ctx context.Context, seed *int) {
	for ctx.Err() == nil {
		*seed++
		one := &trial{settings: p.settings, sys: p.sys, rec: &result.Record{}, dir: p.dir}
		// A load that is refused or cut off is what a storm may meet.
		_, _ = one.load(ctx, 0, "remote-write", "--url", p.srv.WriteURL(), "--name", "storm", "--seed", strconv.Itoa(*seed),
			"--targets", strconv.Itoa(p.scaled(20)), "--metrics", "50", "--series", "100", "--rate", "0", "--rounds", "1", "--start", at(time.Now()))
	}
}

// shape is a query of the tables.
type shape struct {
	name string
	path func(end time.Time) string
}

// isLogs reports whether only a server of lines responds to it.
func (s *shape) isLogs() bool { return strings.HasPrefix(s.path(time.Time{}), "/loki/") }

// lineQuery asks for the newest lines of the whole range.
func lineQuery(logql string, limit int) func(time.Time) string {
	return func(end time.Time) string {
		return "/loki/api/v1/query_range?" + url.Values{
			"query": {logql}, "limit": {strconv.Itoa(limit)}, "start": {unix(end.Add(-pressureSpan))}, "end": {unix(end)},
		}.Encode()
	}
}

// heavyShapes returns the queries of the memory table.
func heavyShapes() []shape {
	const floats, histograms, all = pressureFloats, pressureHistograms, `{__name__=~".+"}`
	const some = `{instance=~"target-0*[0-9].load.*"}`
	over := func(expr string) func(time.Time) string { return overRange(expr, pressureSpan, 15*time.Second) }
	overMinutes := func(expr string) func(time.Time) string { return overRange(expr, pressureSpan, time.Minute) }
	return []shape{
		{name: "floats: sum of rates", path: over("sum by (instance) (rate(" + floats + "[5m]))")},
		{name: "floats: raw", path: overMinutes(floats)},
		{name: "floats: sort", path: instant("sort(" + floats + ")")},
		{name: "join", path: overMinutes(floats + some + " / on (instance, series_id) " + floats + some)},
		{name: "subquery", path: over("max_over_time(sum by (instance) (rate(" + floats + "[5m]))[30m:1m])")},
		{name: "histograms: quantile", path: overMinutes("histogram_quantile(0.9, sum by (instance) (rate(" + histograms + "[10m])))")},
		{name: "histograms: raw", path: overMinutes(histograms)},
		{name: "regex over everything", path: instant(all)},
		{name: "series of everything", path: func(end time.Time) string {
			return "/api/v1/series?" + url.Values{"match[]": {all}, "start": {unix(end.Add(-pressureSpan))}, "end": {unix(end)}}.Encode()
		}},
		{name: "logs: newest", path: lineQuery(`{cluster="load-1"}`, 5000)},
		{name: "logs: needle", path: lineQuery(`{cluster="load-1"} |= "no line has this"`, 100)},
		{name: "logs: json", path: lineQuery(`{cluster="load-1",format="json"} | json | status >= 500`, 5000)},
	}
}

// lightShapes returns queries that a user waits for.
func lightShapes() []shape {
	return []shape{
		{name: "one target", path: instant("sum(" + pressureFloats + `{instance=~"target-0*7.load.svc:9001"})`)},
		{name: "rate of one target", path: overRange("sum(rate("+pressureFloats+`{instance=~"target-0*7.load.svc:9001"}[5m]))`, pressureSpan/4, time.Minute)},
		{name: "names of labels", path: func(time.Time) string { return "/loki/api/v1/labels" }},
		{name: "newest 100 lines of one app", path: lineQuery(`{cluster="load-1",app=~".*7"}`, 100)},
	}
}
