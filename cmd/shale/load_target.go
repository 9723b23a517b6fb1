package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/load/progress"
	"github.com/shaledb/shale/internal/load/tally"
	"github.com/shaledb/shale/internal/load/target"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/verify"
	"github.com/shaledb/shale/internal/terminal/moment"
)

// loadTargetCmd is shale load target.
type loadTargetCmd struct {
	Listen        string `default:"127.0.0.1:9490" placeholder:"HOST:PORT" help:"Address to serve on: /targets/<n>/metrics for each target, and /sd with a list of all targets for http_sd_configs."`
	loadShape     `embed:""`
	ValueInterval config.Duration `default:"30s" placeholder:"TIME" help:"How long a value stays the same. All scrapes within this time see equal values."`
	StartTimes    bool            `name:"start-timestamps" help:"Expose start timestamps of counters and histograms after relabelling. In OpenMetrics these are separate _created series, unless the scraper understands them."`
	Gzip          bool            `default:"true" negatable:"" help:"Compress for scrapers that accept gzip, as Prometheus does. Without it, this process and the scraper use less CPU."`
	Start         string          `default:"1970-01-01T00:00:00Z" placeholder:"TIME" help:"Time at which values and cycles begin: a date, a local time, RFC 3339, Unix seconds, or relative such as -6h. With the default, every process serves the same values, also after a restart."`
	Duration      config.Duration `placeholder:"TIME" help:"How long to serve. 0: until the process is interrupted."`
	Verify        int64           `placeholder:"N" help:"Serve nothing; read this many series back from the server that scrapers wrote to, and check every sample against the value that the target exposed at its time. Repeat the shape and time flags of the target."`
	VerifyFrom    string          `default:"-10m" placeholder:"TIME" help:"Start of the time range to read back, written like --start."`
	VerifyUntil   string          `default:"-30s" placeholder:"TIME" help:"End of the time range to read back. The latest samples may still be on their way."`
	VerifyEvery   config.Duration `placeholder:"TIME" help:"Scrape interval. A gap of more than 1.5 intervals counts as missing samples. 0: do not look for gaps."`
	VerifyLate    config.Duration `default:"10s" placeholder:"TIME" help:"Most that a response may be later than the time of its samples: the scrape_timeout."`
	VerifyOver    verify.Over     `default:"auto" help:"API to read series back with: query (PromQL, without stale markers and whole histograms), remote-read (everything), or auto (remote-read)."`
	VerifyDraw    uint64          `default:"1" placeholder:"N" help:"Seed that selects the series for --verify."`
	QueryURL      string          `default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to read back from, over the Prometheus HTTP API."`
	Tenant        string          `placeholder:"NAME" help:"Tenant to read as (X-Scope-OrgID)."`
	JSON          bool            `name:"json" help:"Print the summary as JSON."`
	Quiet         bool            `help:"Show no progress."`
	loadAccess    `embed:""`
}

// AfterApply reads the token.
func (c *loadTargetCmd) AfterApply() error { return c.read() }

// Help teaches the command by examples.
func (*loadTargetCmd) Help() string {
	return `Serve ten targets of 1,000 series each:

    shale load target
    curl http://127.0.0.1:9490/targets/0/metrics
    curl http://127.0.0.1:9490/sd

Let Prometheus discover all targets, with the labels that shale load remote-write gives to the same series:

    scrape_configs:
    - job_name: load
      http_sd_configs: [{url: 'http://127.0.0.1:9490/sd'}]

Serve the shape of avalanche: 200,000 series per target, relabelled every day, one target after the other:

    shale load target --targets 100 --metrics 2000 --series 100 --series-interval 24h --relabel-jitter stagger:1m

Check that a server has everything that Prometheus servers scraped once a minute in the last half hour:

    shale load target --targets 100 --metrics 2000 --series 100 --series-interval 24h --relabel-jitter stagger:1m \
      --verify 1000 --verify-from -30m --verify-every 1m`
}

// target returns the fleet of targets.
func (c *loadTargetCmd) target(begin time.Time) (*target.Target, error) {
	t := &target.Target{Fleet: c.fleet(), Begin: begin, Gzip: c.Gzip, Now: time.Now, Tally: &tally.Tally{}}
	t.Fleet.Churn.ValueInterval, t.Fleet.StartTimes = c.ValueInterval.Std(), c.StartTimes
	if c.Value == values.Counter {
		t.Fleet.Suffix = totalSuffix
	}
	var err error
	if t.Epoch, err = moment.Parse(c.Start, begin); err != nil {
		return nil, usageError{fmt.Errorf("--start: %w", err)}
	}
	if err := t.Fleet.CheckScraped(); err != nil {
		return nil, usageError{err}
	}
	return t, nil
}

// Run serves until its time is over, or verifies.
func (c *loadTargetCmd) Run(ctx context.Context, p *process) error {
	begin := time.Now()
	t, err := c.target(begin)
	if err != nil {
		return err
	}
	outcome := loadOutcome{JSON: c.JSON, Quiet: c.Quiet}
	if c.Verify > 0 {
		return c.verify(ctx, p, t, &outcome)
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
	meter := progress.Meter{Name: "target", Total: c.Duration.Std().Milliseconds()}
	meter.Detail = func() string {
		return english.Plural(int(t.Tally.Requests.Load()), "scrape", "") + ", " + english.Plural(int(t.Tally.Sent.Load()), "sample", "")
	}
	meter.Read = func() int64 { return time.Since(begin).Milliseconds() }
	if !c.Quiet {
		fmt.Fprintf(p.stderr, "%s of %d series at http://%s/targets/<n>/metrics, listed at /sd\n", english.Plural(int(c.Targets), "target", ""), c.Metrics*c.Series, l.Addr())
	}
	var report *target.Report
	outcome.progress(p).During(meter, func() { report, err = t.Serve(ctx, l) })
	if err != nil {
		return err
	}
	return outcome.printReport(p, report, report)
}

// verify reads back the samples that scrapers have written.
func (c *loadTargetCmd) verify(ctx context.Context, p *process, t *target.Target, outcome *loadOutcome) error {
	from, err := moment.Parse(c.VerifyFrom, t.Begin)
	if err != nil {
		return usageError{fmt.Errorf("--verify-from: %w", err)}
	}
	until, err := moment.Parse(c.VerifyUntil, t.Begin)
	if err != nil {
		return usageError{fmt.Errorf("--verify-until: %w", err)}
	}
	if !from.Before(until) {
		return usageError{errors.New("--verify-from must be before --verify-until")}
	}
	var compared atomic.Int64
	server, hangUp := c.readFrom(c.QueryURL, c.Tenant)
	defer hangUp()
	v := verify.ScrapeVerifier{
		Server: server, Fleet: t.Fleet, Epoch: t.Epoch, Series: c.Verify, Draw: c.VerifyDraw, Over: c.VerifyOver,
		From: from, To: until, Every: c.VerifyEvery.Std(), Late: c.VerifyLate.Std(), Concurrency: verifyConcurrency, Done: func() { compared.Add(1) },
	}
	var found *verify.Samples
	meter := progress.Meter{Name: "verify", Total: c.Verify, Read: compared.Load, Detail: func() string { return fmt.Sprintf("%d series", compared.Load()) }}
	outcome.progress(p).During(meter, func() { found, err = v.Run(ctx) })
	if err != nil {
		return err
	}
	return outcome.printVerification(p, found, nil)
}
