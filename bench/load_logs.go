package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/shaledb/shale/bench/proc"
	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/load/send"
)

// logLoads returns the loads of lines.
func logLoads() []*load {
	streams := []string{"series", "line-B", "line-B/s", "cpu-s/GB-settled", "rss-B", "peak-B", "settled-rss-B", "disk/raw", "lost"}
	return []*load{
		{name: "logs-ingest", about: "Lines of logs by Loki's protocol, 400 streams, half JSON, the rest logfmt and access logs, 6 hours of stamps, 1 MB a push, 3 senders",
			speaks: "logs", run: logsIngest, long: true,
			columns: []string{"line-B", "line-B/s", "cpu-s/GB", "cpu-s/GB-settled", "disk/raw", "rss-B", "peak-B", "settled-rss-B", "p50-s", "p99-s", "lost", "retries", "loader-cpu-s/GB"},
			ratios:  []string{"line-B/s", "cpu-s/GB-settled", "disk/raw", "peak-B"}},
		{name: "logs-queries", about: "Queries of those lines, once after a restart with an empty page cache, then again and again",
			speaks: "logs", run: logsQueries, long: true, columns: []string{"line-B", "disk/raw"}, more: logQueryReport},
		{name: "logs-metrics", about: "Metric queries over those lines, with windows as long as the step: results of all systems must agree",
			speaks: "logs", run: logsCounts(6, false), long: true, columns: []string{"line-B", "disk/raw"}, more: logCountReport("logs-metrics")},
		{name: "logs-metrics-first", about: "The first three of these queries, which fit more lines",
			speaks: "logs", run: logsCounts(3, false), long: true, columns: []string{"line-B", "disk/raw"}, more: logCountReport("logs-metrics-first")},
		{name: "logs-metrics-exploded", about: "Those of these queries that parse JSON, in a VictoriaLogs that parses it when it receives lines",
			speaks: "logs", only: isVictoriaLogs, run: logsCounts(6, true), long: true, columns: []string{"line-B", "disk/raw"}, more: logCountReport("logs-metrics-exploded")},
		{name: "drilldown", about: "Lines of 400 streams over a week; the requests of Logs Drilldown over an hour, a day and a week",
			speaks: "logs", only: speaksLoki, run: drilldown, long: true, columns: []string{"line-B", "disk/raw"}, more: drilldownReport},
		{name: dashboardRefreshLoad, about: "A dashboard of 20 panels over a day of lines and samples, refreshed each 10 s for 10 minutes: cold, warm, with late data, after a restart",
			speaks: "logs", only: isThisTree, run: dashboard, long: true, columns: []string{"line-B", "disk/raw"}, more: dashboardReport},
		{name: requestsLoad, about: "Cold queries of metrics and lines in S3 with 20 and 100 ms added, with stalled requests, and 20 at once; needs versitygw",
			speaks: "logs", only: isThisTree, run: requestsS3, long: true, columns: []string{"line-B", "disk/raw"}, more: requestReport},
		{name: "logs-streams-10k", about: "Lines of 10,000 streams over a week; names and values of labels, and series",
			speaks: "logs", run: logsStreams(10_000, 200, 2000), long: true, columns: streams, ratios: []string{"peak-B"}, more: logLabelReport("logs-streams-10k")},
		{name: "logs-streams-1m", about: "The same with 1,000,000 streams",
			speaks: "logs", run: logsStreams(1_000_000, 1000, 1000), long: true, columns: streams, ratios: []string{"peak-B"}, more: logLabelReport("logs-streams-1m")},
	}
}

func isVictoriaLogs(s *system.System) bool { return s.Kind == system.VictoriaLogs }

func speaksLoki(s *system.System) bool { return s.Kind != system.VictoriaLogs }

// logsMemory is the budget of Shale in the loads of logs.
const logsMemory = "512MiB"

// logsSpan is the time over which stamps are spread. They end so long ago that a server may store all of them
// for good.
const (
	logsSpan = 6 * time.Hour
	logsAgo  = 3 * time.Hour
)

// logs returns the arguments of a load of lines.
func (t *trial) logs(srv *system.Server, gb float64, start time.Time, span time.Duration, more ...string) []string {
	return append([]string{
		"logs", "--url", srv.PushURL(), "--mb", strconv.FormatFloat(max(1, gb*1000*t.Scale), 'f', 0, 64), "--span", span.String(), "--start", at(start),
		"--concurrency", "3",
	}, more...)
}

// logsIngest measures the cost to receive lines, merge them and ship them.
func logsIngest(ctx context.Context, t *trial) error {
	start := time.Now().Add(-logsSpan - logsAgo).Truncate(time.Minute)
	_, err := t.ingestLogs(ctx, func(srv *system.Server) []string { return t.logs(srv, t.LogsGB, start, logsSpan) })
	return err
}

// ingestLogs starts a server, sends it lines, and stops it when it has settled.
func (t *trial) ingestLogs(ctx context.Context, args func(srv *system.Server) []string) (report *send.LogsReport, err error) {
	var cpu float64
	if err := t.with(ctx, logsMemory, func(srv *system.Server) (err error) {
		report, cpu, err = t.measureLogs(ctx, srv, args(srv)...)
		return err
	}); err != nil {
		return report, err
	}
	more, size, err := t.putAway(ctx)
	if err != nil {
		return report, err
	}
	gb := float64(report.LineBytes) / 1e9
	t.rec.Set("cpu-s/GB-settled", (cpu+more)/gb)
	t.rec.Set("disk/raw", size/float64(report.LineBytes))
	return report, nil
}

// measureLogs runs a load of lines and records its cost until the server has settled. It returns the usage of
// the server then.
func (t *trial) measureLogs(ctx context.Context, srv *system.Server, args ...string) (report *send.LogsReport, cpu float64, err error) {
	if err := proc.ClearPeak(srv.PID); err != nil {
		t.rec.Note("the peak of memory is counted from the start of the server: %v", err)
	}
	before, err := srv.Usage()
	if err != nil {
		return nil, 0, err
	}
	// Even a server with 20 MB/s receives everything in that time.
	if report, err = t.load(ctx, time.Duration(t.LogsGB*50)*time.Second, args...); err != nil {
		return report, 0, err
	}
	after, err := srv.Usage()
	if err != nil {
		return report, 0, err
	}
	r, gb := t.rec, float64(report.LineBytes)/1e9
	r.Set("series", float64(report.Series))
	r.Set("line-B", float64(report.LineBytes))
	r.Set("line-B/s", report.LineRate)
	r.Set("cpu-s/GB", (after.CPU-before.CPU)/gb)
	r.Set("rss-B", float64(after.RSS))
	r.Set("peak-B", float64(after.Peak))
	r.Set("p50-s", report.Latency.P50)
	r.Set("p99-s", report.Latency.P99)
	r.Set("retries", float64(report.Retries))
	r.Set("loader-cpu-s/GB", report.CPUPerGB)
	if lost := report.Sent - report.Acked; lost > 0 {
		r.Set("lost", float64(lost))
		r.Note("%d of %d lines were not acknowledged: %s", lost, report.Sent, report.LastError)
	}
	if err := t.flushLogs(ctx, srv); err != nil {
		return report, 0, err
	}
	u, quiet, err := t.quiet(ctx, srv)
	if err != nil {
		return report, 0, err
	}
	if !quiet {
		r.Note("still busy after %v", t.Settle)
	}
	r.Set("settled-rss-B", float64(u.RSS))
	// The memory of later merges counts for the bound as well.
	r.Set("peak-B", float64(u.Peak))
	return report, u.CPU - before.CPU, nil
}

// flushLogs makes another server write its memory to the disk.
func (t *trial) flushLogs(ctx context.Context, srv *system.Server) error {
	switch srv.Kind {
	case system.Loki:
		code, body, err := srv.Post(ctx, "/flush")
		if err == nil && code/100 != 2 {
			err = fmt.Errorf("loki: /flush: status %d: %.200s", code, body)
		}
		return err
	case system.VictoriaLogs:
		return t.do(ctx, srv, http.MethodGet, "/internal/force_flush")
	}
	return nil
}

// putAway finishes the work of a stopped server. It returns the CPU time of that and the size of the stored
// data: for Shale the blocks of its bucket, for Loki chunks and index without its journal, for VictoriaLogs
// all files.
func (t *trial) putAway(ctx context.Context) (cpu, size float64, err error) {
	dir := filepath.Join(t.dir, "data")
	switch t.sys.Kind {
	case system.Shale:
		before := ownCPU()
		size, err = t.shipAndCompact(ctx)
		return ownCPU() - before, size, err
	case system.Loki:
		all, err1 := system.DiskBytes(filepath.Join(dir, "data"))
		// All chunks have been flushed. With 10 GB in the journal, Loki is not ready within minutes of each start.
		wal := filepath.Join(dir, "data", "wal")
		journal, err2 := system.DiskBytes(wal)
		return 0, float64(all - journal), errors.Join(err1, err2, os.RemoveAll(wal))
	}
	all, err := system.DiskBytes(dir)
	return 0, float64(all), err
}

// ownCPU returns the CPU time of this process in seconds.
func ownCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// aside makes a record in addition to that of the load.
func (t *trial) aside(load string) result.Record {
	return result.Record{
		Load: load, System: t.rec.System, Version: t.rec.Version, Run: t.rec.Run, Began: time.Now(), Machine: t.rec.Machine, Scale: t.rec.Scale,
	}
}
