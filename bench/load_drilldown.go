package main

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
)

// drilldown measures the requests by which Grafana explores lines: over the last hour, day and week of a week
// of lines.
func drilldown(ctx context.Context, t *trial) error {
	end := time.Now().Add(-logsAgo).Truncate(time.Minute)
	if _, err := t.ingestLogs(ctx, func(srv *system.Server) []string {
		return t.logs(srv, t.LogsGB, end.Add(-streamsSpan), streamsSpan)
	}); err != nil {
		return err
	}
	return t.with(ctx, logsMemory, func(srv *system.Server) error {
		for _, r := range drilldownRequests() {
			if t.sys.Kind == system.Loki && r.path == "patterns" {
				t.rec.Note("its patterns need a service of their own, which is not enabled")
				continue
			}
			for _, span := range labelSpans() {
				name := r.name + ", " + span.name
				target := func(i int) string {
					// A range that ends now slides by seconds.
					to := end.Add(time.Duration(i-labelAsks-1) * time.Second)
					return r.target(to.Add(-span.length), to)
				}
				t.askAside(ctx, srv, name, target)
				if t.sys.Kind == system.Shale {
					t.askAside(ctx, srv.AsUsers(), name+keptSuffix, target)
				}
				if err := ctx.Err(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// keptSuffix names requests that kept results may answer.
const keptSuffix = ", kept"

// askAside measures a request, and records it as a load of its own.
func (t *trial) askAside(ctx context.Context, srv *system.Server, name string, target func(i int) string) {
	rec := t.aside(drilldownLoad(name))
	if err := t.askDrilldown(ctx, srv, target, &rec); err != nil {
		rec.Error = name + ": " + err.Error()
	}
	t.extra = append(t.extra, rec)
}

func drilldownLoad(name string) string { return "drilldown/" + name }

// drilldownRequest is a request of Grafana's, without its times.
type drilldownRequest struct {
	name, path string
	form       url.Values
	steps      int64 // of the range; 0: the request has none
}

func drilldownRequests() []drilldownRequest {
	const all, app = "{cluster=\"load-1\"}", "{cluster=\"load-1\",app=\"checkout\"}"
	return []drilldownRequest{
		{"labels", "labels", url.Values{"query": {all}}, 0},
		{"series of one app", "series", url.Values{"match[]": {app}}, 0},
		{"volume by app", "index/volume", url.Values{"query": {all}, "targetLabels": {"app"}, "limit": {"1000"}}, 0},
		{"volume_range by app", "index/volume_range", url.Values{"query": {all}, "targetLabels": {"app"}, "limit": {"1000"}}, 100},
		{"stats", "index/stats", url.Values{"query": {all}}, 0},
		{"detected_labels", "detected_labels", url.Values{"query": {all}}, 0},
		{"patterns of one app", "patterns", url.Values{"query": {app}}, 100},
		{"detected_fields of one app", "detected_fields", url.Values{"query": {app}, "line_limit": {"1000"}, "limit": {"1000"}}, 0},
	}
}

// target returns the path of the request with its parameters.
func (r *drilldownRequest) target(from, to time.Time) string {
	form := url.Values{"start": {strconv.FormatInt(from.UnixNano(), 10)}, "end": {strconv.FormatInt(to.UnixNano(), 10)}}
	for name, values := range r.form {
		form[name] = values
	}
	if r.steps > 0 {
		form.Set("step", strconv.FormatInt(int64(to.Sub(from).Seconds())/r.steps, 10)+"s")
	}
	return "/loki/api/v1/" + r.path + "?" + form.Encode()
}

// askDrilldown measures a request as one for labels. Of Shale it records the lines whose text was looked at,
// and the pages of all kinds: those of the index, and those that describe lines, among them.
func (t *trial) askDrilldown(ctx context.Context, srv *system.Server, path func(i int) string, rec *result.Record) error {
	if err := t.askLabels(ctx, srv, path, rec); err != nil || t.sys.Kind != system.Shale {
		return err
	}
	cost, err := srv.Cost(ctx, path(labelAsks+1))
	if err != nil {
		return err
	}
	rec.Set("scanned-lines", cost["text-lines"])
	rec.Set("store-pages", cost["pages-ram"]+cost["pages-disk"]+cost["pages-bucket"])
	return nil
}

// drilldownReport makes a table of the requests.
func drilldownReport(records []result.Record) string {
	var names []string
	for _, r := range drilldownRequests() {
		for _, span := range labelSpans() {
			names = append(names, r.name+", "+span.name, r.name+", "+span.name+keptSuffix)
		}
	}
	return asideReport(records, "request", names, drilldownLoad, []string{"answer-B", "scanned-lines", "store-pages", "first-s", "p50-s", "p99-s", "cpu-s", "rss-B"})
}
