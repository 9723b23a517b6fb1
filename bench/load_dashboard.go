package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
)

const (
	// A dashboard of a day is refreshed each 10 s for 10 minutes. As Grafana does, its times are multiples of
	// the step. The times of the refreshes lie in the past, so that a run takes no longer than its requests.
	dashboardSpan    = 24 * time.Hour
	dashboardStep    = time.Minute
	dashboardRefresh = 10 * time.Second
	dashboardLasts   = 10 * time.Minute

	dashboardJobs = 4 // of 100 series each

	dashboardRefreshLoad = "dashboard-refresh"
)

// panel is a panel of the dashboard.
type panel struct {
	query string
	logs  bool
}

// dashboardPanels returns the panels, which docs/cache.md lists.
func dashboardPanels() []panel {
	const all, app = `{cluster="load-1"}`, `{cluster="load-1",app="checkout"}`
	const rated = "dashboard_mmmmm_0"
	return []panel{
		{"sum(rate(" + rated + "[5m]))", false},
		{"sum by (job) (rate(" + rated + "[5m]))", false},
		{"topk(5, sum by (instance) (rate(" + rated + "[5m])))", false},
		{"max by (job) (increase(" + rated + "[10m]))", false},
		{"sum by (job) (rate(" + rated + "[5m])) / on () group_left () sum(rate(" + rated + "[5m]))", false},
		{"avg by (job) (irate(" + rated + "[5m]))", false},
		{"max by (job) (quantile_over_time(0.9, " + rated + "[15m]))", false},
		{"count by (job) (" + rated + ")", false},
		{"max_over_time(sum(rate(" + rated + "[5m]))[30m:1m])", false},
		{"sum by (job) (" + rated + ") - sum by (job) (" + rated + " offset 1h)", false},
		{"sum by (level) (count_over_time(" + all + "[5m]))", true},
		{"sum by (app) (rate(" + all + "[5m]))", true},
		{"topk(5, sum by (app) (bytes_rate(" + all + "[5m])))", true},
		{"sum(rate(" + all + ` |= "error" [5m]))`, true},
		{"sum by (status) (count_over_time(" + app + " | json [5m]))", true},
		{"quantile_over_time(0.99, " + app + " | json | unwrap duration_ms [5m]) by (method)", true},
		{"sum by (app) (count_over_time(" + all + ` |~ "(?i)time.?out" [5m]))`, true},
		{`sum(count_over_time({cluster="load-1",level="error"}[5m])) / sum(count_over_time(` + all + "[5m]))", true},
		{"max by (method) (avg_over_time(" + app + " | json | unwrap duration_ms [5m]))", true},
		{"sum by (format) (bytes_over_time(" + all + "[5m]))", true},
	}
}

// path returns the request of a panel at a refresh.
func (p *panel) path(at time.Time) string {
	at = at.Truncate(dashboardStep)
	prefix := "/api/v1/query_range?"
	if p.logs {
		prefix = "/loki/api/v1/query_range?"
	}
	return prefix + url.Values{
		"query": {p.query}, "start": {unix(at.Add(-dashboardSpan))}, "end": {unix(at)}, "step": {strconv.Itoa(int(dashboardStep.Seconds()))},
	}.Encode()
}

// dashboard measures refreshes of a dashboard, each as users see it and with everything computed again, and
// compares the results.
func dashboard(ctx context.Context, t *trial) error {
	end := time.Now().Truncate(time.Minute)
	from := end.Add(-dashboardSpan - time.Hour)
	if _, err := t.ingestLogs(ctx, func(srv *system.Server) []string { return t.logs(srv, t.LogsGB, from, end.Sub(from)) }); err != nil {
		return err
	}
	if err := t.with(ctx, "", func(srv *system.Server) error {
		for job := range dashboardJobs {
			if err := t.sendJob(ctx, srv, job, from, int(end.Sub(from)/dashboardStep)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if _, err := t.shipAndCompact(ctx); err != nil {
		return err
	}
	begin := end.Add(-dashboardLasts)
	refreshes := int(dashboardLasts / dashboardRefresh)
	if err := t.with(ctx, logsMemory, func(srv *system.Server) error {
		return errors.Join(
			t.refresh(ctx, srv, "cold", begin, 1, nil),
			t.refresh(ctx, srv, "warm", begin.Add(dashboardRefresh), refreshes-1, nil),
			t.refresh(ctx, srv, "late data", end.Add(-2*time.Minute), 12, func(i int) error { return t.sendLate(ctx, srv, end, i) }),
		)
	}); err != nil {
		return err
	}
	return t.with(ctx, logsMemory, func(srv *system.Server) error {
		return errors.Join(
			t.refresh(ctx, srv, "after restart", end.Add(-2*time.Minute), 1, nil),
			t.refresh(ctx, srv, "after restart, warm", end.Add(-2*time.Minute+dashboardRefresh), 12, nil),
		)
	})
}

// sendJob sends a sample a minute of 100 counters.
func (t *trial) sendJob(ctx context.Context, srv *system.Server, job int, from time.Time, rounds int) error {
	one := &trial{settings: t.settings, sys: t.sys, rec: &result.Record{}, dir: t.dir}
	_, err := one.load(ctx, 0, "remote-write", "--url", srv.WriteURL(), "--name", "dashboard", "--seed", strconv.Itoa(job+1),
		"--targets", "10", "--metrics", "1", "--series", "10", "--value", "counter", "--rate", "0", "--concurrency", "1",
		"--rounds", strconv.Itoa(rounds), "--step", dashboardStep.String(), "--start", at(from))
	return err
}

// sendLate sends samples and lines that are up to an hour old.
func (t *trial) sendLate(ctx context.Context, srv *system.Server, end time.Time, i int) error {
	late := end.Add(-time.Hour + time.Duration(i)*time.Minute)
	if err := t.sendJob(ctx, srv, dashboardJobs, late, 5); err != nil {
		return err
	}
	one := &trial{settings: t.settings, sys: t.sys, rec: &result.Record{}, dir: t.dir}
	_, err := one.load(ctx, 0, "logs", "--url", srv.PushURL(), "--mb", "1", "--span", "1m", "--start", at(late), "--concurrency", "1", "--seed", strconv.Itoa(100+i))
	return err
}

// refreshCost is what refreshes cost.
type refreshCost struct{ cpu, seconds, requests float64 }

// refresh refreshes the dashboard some times, and records the cost of one refresh. before, if any, is called
// before each.
func (t *trial) refresh(ctx context.Context, srv *system.Server, phase string, from time.Time, times int, before func(i int) error) error {
	rec := t.aside(dashboardRefreshLoad + "/" + phase)
	var usual, fresh refreshCost
	differ := 0
	for i := range times {
		if before != nil {
			if err := before(i); err != nil {
				return err
			}
		}
		at := from.Add(time.Duration(i) * dashboardRefresh)
		kept, err := t.refreshOnce(ctx, srv, at, false, &usual)
		if err != nil {
			return err
		}
		computed, err := t.refreshOnce(ctx, srv, at, true, &fresh)
		if err != nil {
			return err
		}
		for k, p := range dashboardPanels() {
			if !bytes.Equal(kept[k], computed[k]) {
				differ++
				t.rec.Note("%s at %s: the result is not the one that is computed afresh", p.query, at)
			}
		}
	}
	n := float64(times)
	rec.Set("refreshes", n)
	rec.Set("cpu-s", usual.cpu/n)
	rec.Set("fresh-cpu-s", fresh.cpu/n)
	rec.Set("wall-s", usual.seconds/n)
	rec.Set("fresh-wall-s", fresh.seconds/n)
	rec.Set("bucket-requests", usual.requests/n)
	rec.Set("fresh-bucket-requests", fresh.requests/n)
	rec.Set("different", float64(differ))
	t.extra = append(t.extra, rec)
	if differ > 0 {
		return fmt.Errorf("%s: %d results are not those that are computed afresh", phase, differ)
	}
	return nil
}

// refreshOnce asks all panels and returns their results.
func (t *trial) refreshOnce(ctx context.Context, srv *system.Server, at time.Time, fresh bool, cost *refreshCost) (results []json.RawMessage, err error) {
	reads, err := t.bucketCounters(ctx, srv)
	if err != nil {
		return nil, err
	}
	before, err := srv.Usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	var bodies [][]byte
	for _, p := range dashboardPanels() {
		body, err := askPanel(ctx, srv, p.path(at), fresh)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.query, err)
		}
		bodies = append(bodies, body)
	}
	cost.seconds += time.Since(began).Seconds()
	after, err := srv.Usage()
	if err != nil {
		return nil, err
	}
	cost.cpu += after.CPU - before.CPU
	now, err := t.bucketCounters(ctx, srv)
	if err != nil {
		return nil, err
	}
	cost.requests += now[0] - reads[0]
	for _, body := range bodies {
		// The statistics of an answer tell how it was computed, and are not compared.
		var a struct {
			Status string
			Data   struct{ Result json.RawMessage }
		}
		if err := json.Unmarshal(body, &a); err != nil || a.Status != "success" {
			return nil, fmt.Errorf("an answer of status %q: %w", a.Status, err)
		}
		results = append(results, a.Data.Result)
	}
	return results, nil
}

// askPanel sends a request, perhaps with a header that wants everything computed.
func askPanel(ctx context.Context, srv *system.Server, path string, fresh bool) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+srv.HTTP+path, nil)
	if err != nil {
		return nil, err
	}
	if fresh {
		req.Header.Set("Cache-Control", "no-cache")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, body)
	}
	return body, err
}

// dashboardReport makes a table of the phases.
func dashboardReport(records []result.Record) string {
	return asideReport(records, "phase", []string{"cold", "warm", "late data", "after restart", "after restart, warm"},
		func(name string) string { return dashboardRefreshLoad + "/" + name },
		[]string{"refreshes", "cpu-s", "fresh-cpu-s", "wall-s", "fresh-wall-s", "bucket-requests", "fresh-bucket-requests", "different"})
}
