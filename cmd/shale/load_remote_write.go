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
	URL         string           `default:"http://127.0.0.1:9480/api/v1/write" help:"Endpoint to send to."`
	Protocol    wire.Protocol    `default:"v1" help:"Version of remote write: v1 (prometheus.WriteRequest) or v2 (io.prometheus.write.v2.Request, with a table of symbols). Of v2, a 2xx whose headers say that nothing was written counts as a refusal, as for a Prometheus."`
	Compression wire.Compression `default:"snappy" help:"Compression of bodies: snappy, or zstd, which vmagent sends and Prometheus does not."`
	loadShape   `embed:""`

	Tenants       int             `default:"1" help:"Tenants that have all these series each, with other values. Their names are --tenant, or load, and a number: load-0."`
	Scrapers      int             `default:"1" help:"Prometheus servers that scrape all targets each: the same values again for each, under a label scraper."`
	ValueInterval config.Duration `help:"How long a value stays. 0: until the next sample."`
	StaleMarkers  bool            `default:"true" negatable:"" help:"End each series that is relabelled with a stale marker, as a Prometheus does that scrapes."`
	Jitter        config.Duration `help:"By how much a scrape may be late: each target's samples of a round bear a time of their own, up to so much after the round's."`
	Ooo           lateness        `name:"ooo" placeholder:"SHARE:TIME" help:"Out-of-order: this share of samples is sent behind newer ones of its series, by up to this time, such as 0.1:30m."`
	Dup           float64         `placeholder:"SHARE" help:"Duplicates: this share of samples is sent twice, half of them in one request, half again with the next round."`
	Metadata      bool            `help:"Send type, help and unit of metrics: with every series of v2, in requests of their own once a minute of v1. Names of counters then end in _total."`
	StartTimes    bool            `name:"start-timestamps" help:"Say of counters and histograms since when they count; only v2 can."`

	Interval    config.Duration `default:"15s" help:"Time between two samples of a series; requests are spread evenly over it."`
	Batch       int             `default:"2000" help:"Series in one request."`
	Concurrency int             `default:"4" help:"Shards: requests at a time. Each series keeps to one shard, so its samples stay in order."`
	Emulate     send.Emulation  `default:"prometheus" help:"Whose ways to have with errors. prometheus: send again after 5xx, 30ms to 5s apart, drop after 4xx. vmagent: drop after 400, 409 and 415, send again after all else, 1s to 1m apart; a refused zstd body goes again as snappy. Both wait as Retry-After says."`
	RetryOn429  bool            `name:"retry-on-http-429" help:"As prometheus, send again what a limit of the tenant refused, which a Prometheus drops by default; a vmagent never drops it."`
	loadTiming  `embed:""`
	loadOutcome `embed:""`
}

// Help teaches the command by examples.
func (*loadRemoteWriteCmd) Help() string {
	return `A million series, ten samples each, as fast as the server takes them, then all counts and 10,000 series compared:

    shale load remote-write --targets 1000 --metrics 10 --series 100 --rate 0 --rounds 10 --verify 10000 --verify-counts

Native histograms with exemplars by version 2, every bucket compared over remote read:

    shale load remote-write --protocol v2 --value histogram --exemplars 0.1 --metadata --rounds 20 --rate 0 --verify 1000

Every series replaced each minute, one target after the other, with stale markers, and a tenth of all samples late:

    shale load remote-write --interval 5s --series-interval 1m --relabel-jitter stagger:3s --ooo 0.1:30s --duration 5m --verify 1000

What must have survived when the server is killed during the load:

    shale load remote-write --rate 100000 --duration 30s --state /tmp/load.state   # and kill -9 the server meanwhile
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
		URL: c.URL, Tenant: c.Tenant, UserAgent: "shale-load/" + version, Protocol: c.Protocol, Compression: c.Compression,
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
