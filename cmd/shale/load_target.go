package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/load"
)

// loadTargetCmd is shale load target.
type loadTargetCmd struct {
	Listen        string `default:"127.0.0.1:9490" help:"Address to serve on: /targets/<n>/metrics for each target, and /sd, a list of all of them for Prometheus' http_sd_configs."`
	loadShape     `embed:""`
	ValueInterval config.Duration `default:"30s" help:"How long a value stays: whoever scrapes within, and however often, sees the same."`
	StartTimes    bool            `name:"start-timestamps" help:"Say of counters and histograms since when they count, once series are relabelled. In OpenMetrics these are series of their own, ending in _created, unless the scraper knows them."`
	Gzip          bool            `default:"true" negatable:"" help:"Compress for scrapers that accept it, as a Prometheus does. Without, this process and the scraper spend less CPU."`
	Start         string          `default:"1970-01-01T00:00:00Z" help:"When values and cycles begin: 2026-03-01T12:00:00Z, Unix seconds, or -6h. With the default, a second process or one that is started again serves the same."`
	Duration      config.Duration `help:"How long to serve. 0: until the process is interrupted."`
	JSON          bool            `name:"json" help:"Print the summary as JSON."`
	Quiet         bool            `help:"Show no progress."`
}

// Help teaches the command by examples.
func (*loadTargetCmd) Help() string {
	return `Ten targets of 1,000 series each:

    shale load target
    curl http://127.0.0.1:9490/targets/0/metrics
    curl http://127.0.0.1:9490/sd

A Prometheus finds all targets by itself, with the labels that shale load remote-write gives the same series:

    scrape_configs:
    - job_name: load
      http_sd_configs: [{url: 'http://127.0.0.1:9490/sd'}]

Avalanche's shape, 200,000 series a target, relabelled every day, one target after the other:

    shale load target --targets 100 --metrics 2000 --series 100 --series-interval 24h --relabel-jitter stagger:1m`
}

// Run serves until its time is over.
func (c *loadTargetCmd) Run(ctx context.Context, p *process) error {
	begin := time.Now()
	t := &load.Target{Fleet: c.fleet(), Begin: begin, Gzip: c.Gzip, Now: time.Now, Tally: &load.Tally{}}
	t.Fleet.Churn.ValueInterval, t.Fleet.StartTimes = c.ValueInterval.Std(), c.StartTimes
	if c.Value == load.Counter {
		t.Fleet.Suffix = totalSuffix
	}
	var err error
	if t.Epoch, err = parseTime(c.Start, begin); err != nil {
		return usageError{fmt.Errorf("--start: %w", err)}
	}
	if err := t.Check(); err != nil {
		return usageError{err}
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	if d := c.Duration.Std(); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	outcome := loadOutcome{JSON: c.JSON, Quiet: c.Quiet}
	meter := load.Meter{Name: "target", Total: c.Duration.Std().Milliseconds()}
	meter.Detail = func() string { return fmt.Sprintf("%d scrapes, %d samples", t.Tally.Scraped(), t.Tally.Sent()) }
	meter.Read = func() int64 { return time.Since(begin).Milliseconds() }
	var report *load.Report
	if !c.Quiet {
		fmt.Fprintf(p.stderr, "%d targets of %d series at http://%s/targets/<n>/metrics, listed at /sd\n", c.Targets, c.Metrics*c.Series, l.Addr())
	}
	outcome.progress(p).During(meter, func() { report, err = t.Serve(ctx, l) })
	if err != nil {
		return err
	}
	return outcome.print(p, report)
}
