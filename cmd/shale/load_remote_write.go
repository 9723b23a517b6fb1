package main

import (
	"context"
	"time"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/verify"
	"github.com/shaledb/shale/internal/load/wire"
)

// loadRemoteWriteCmd is shale load remote-write.
type loadRemoteWriteCmd struct {
	URL         string           `default:"http://127.0.0.1:9480/api/v1/write" placeholder:"URL" help:"Remote write endpoint to send to; without a path, /api/v1/write."`
	Protocol    wire.Protocol    `default:"v1" help:"Version of remote write: v1 (prometheus.WriteRequest) or v2 (io.prometheus.write.v2.Request, with a table of symbols). With v2, a 2xx response whose headers count nothing as written is a refusal, as in Prometheus."`
	Compression wire.Compression `default:"snappy" help:"Compression of bodies: snappy, or zstd (sent by vmagent, not by Prometheus)."`
	loadShape   `embed:""`

	Tenants       int             `default:"1" placeholder:"N" help:"Number of tenants. Each has all series, with its own values, and is named after --tenant (or load) and a number, such as load-0."`
	Scrapers      int             `default:"1" placeholder:"N" help:"Number of Prometheus servers that each scrape all targets. They send the same values under different scraper labels."`
	ValueInterval config.Duration `placeholder:"TIME" help:"How long a value stays the same. 0: it changes with every sample."`
	StaleMarkers  bool            `default:"true" negatable:"" help:"End relabelled series with a stale marker, as a scraping Prometheus does."`
	Jitter        config.Duration `placeholder:"TIME" help:"Most that a scrape may be late. The samples of each target get their own time, up to this much after the round begins."`
	Ooo           lateness        `name:"ooo" placeholder:"SHARE:TIME" help:"Out-of-order samples: this share is sent up to this much later, after newer samples of its series, such as 0.1:30m."`
	Dup           float64         `placeholder:"SHARE" help:"Duplicate samples: this share is sent twice, half of it within one request and half with the next round."`
	Metadata      bool            `help:"Send type, help and unit of metrics: with every series (v2), or in separate requests once a minute (v1). Counter names then end in _total."`
	StartTimes    bool            `name:"start-timestamps" help:"Send start timestamps of counters and histograms (v2 only)."`

	Interval    config.Duration `default:"15s" placeholder:"TIME" help:"Time between two samples of a series. Requests are spread evenly over it."`
	Batch       int             `default:"2000" placeholder:"N" help:"Number of series per request."`
	Concurrency int             `default:"4" placeholder:"N" help:"Number of concurrent requests (shards). A series always uses the same shard, so its samples stay in order."`
	Emulate     send.Emulation  `default:"prometheus" help:"Sender whose error handling to imitate. prometheus: retry after 5xx, 30ms to 5s apart, drop after 4xx. vmagent: drop after 400, 409 and 415, retry after all else, 1s to 1m apart, and retry a refused zstd body as snappy. Both honour Retry-After."`
	RetryOn429  bool            `name:"retry-on-http-429" help:"With --emulate prometheus: retry after 429 instead of dropping. Prometheus drops by default; vmagent always retries."`
	loadTiming  `embed:""`
	loadOutcome `embed:""`
}

// AfterApply completes the URL.
func (c *loadRemoteWriteCmd) AfterApply() error {
	c.URL = withPath(c.URL, "/api/v1/write")
	return c.read()
}

// Help teaches the command by examples.
func (*loadRemoteWriteCmd) Help() string {
	return `Send a million series with ten samples each, as fast as the server accepts them; then compare all counts and 10,000 series:

    shale load remote-write --targets 1000 --metrics 10 --series 100 --rate 0 --rounds 10 --verify 10000 --verify-counts

Send native histograms with exemplars over version 2, and compare every bucket over remote read:

    shale load remote-write --protocol v2 --value histogram --exemplars 0.1 --metadata --rounds 20 --rate 0 --verify 1000

Replace every series each minute, one target after the other, with stale markers and a tenth of all samples late:

    shale load remote-write --interval 5s --series-interval 1m --relabel-jitter stagger:3s --ooo 0.1:30s --duration 5m --verify 1000

Check what survived after the server was killed during the load:

    shale load remote-write --rate 100000 --duration 30s --state /tmp/load.state   # kill -9 the server meanwhile
    shale load remote-write --verify-only --state /tmp/load.state --verify 10000 --verify-counts`
}

// load returns the load without its schedule and state file.
func (c *loadRemoteWriteCmd) load() *send.RemoteWrite {
	f := c.fleet()
	f.Tenants, f.Scrapers, f.Metadata, f.StartTimes = c.Tenants, c.Scrapers, c.Metadata, c.StartTimes
	f.Churn.ValueInterval, f.Churn.Jitter = c.ValueInterval.Std(), c.Jitter.Std()
	f.Churn.StaleMarkers = c.StaleMarkers && f.Churn.SeriesInterval > 0
	if c.Metadata && c.Value == values.Counter {
		f.Suffix = totalSuffix
	}
	return &send.RemoteWrite{
		Fleet: f, Disorder: fleet.Disorder{Late: pace.Lateness(c.Ooo), Twice: c.Dup},
		URL: c.URL, Tenant: c.Tenant, Token: c.Token, UserAgent: "shale-load/" + version, Protocol: c.Protocol, Compression: c.Compression,
		Batch: c.Batch, Concurrency: c.Concurrency, Emulate: c.Emulate, RetryOn429: c.RetryOn429, Tally: &send.RemoteWriteTally{},
	}
}

// Run sends the load and verifies it.
func (c *loadRemoteWriteCmd) Run(ctx context.Context, p *process) (err error) {
	if c.VerifyOnly {
		return c.verifyOnly(ctx, p, 0)
	}
	l := c.load()
	if l.Schedule, err = c.schedule(c.Interval, l.Fleet.Total(), time.Millisecond); err != nil {
		return usageError{err}
	}
	if err := l.Check(); err != nil {
		return usageError{err}
	}
	if l.State, err = c.createState(l.Header()); err != nil {
		return err
	}
	var state *statefile.State
	var report *send.RemoteWriteReport
	c.progress(p).During(c.meter("remote-write", l.Fleet.Total(), &l.Tally.Tally), func() { state, report, err = l.Run(ctx) })
	if cerr := l.State.Close(); err == nil {
		err = cerr
	}
	if report == nil {
		return err
	}
	all := struct {
		*send.RemoteWriteReport
		Verified *verify.Samples `json:"verification,omitempty"`
	}{RemoteWriteReport: report}
	reports := []textReport{report}
	if err == nil {
		if all.Verified, err = c.verifyIfAsked(ctx, p, state, 0); all.Verified != nil {
			reports = append(reports, all.Verified)
		}
	}
	if perr := c.printReport(p, all, reports...); perr != nil {
		return perr
	}
	if err := verdict(all.Verified, err); err != nil {
		return err
	}
	return nothingSent(&report.Delivery, &report.Traffic, report.LastError)
}
