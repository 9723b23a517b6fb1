package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/load"
)

// loadCmd makes load for a server and verifies what became of it.
type loadCmd struct {
	Graphite    loadGraphiteCmd    `cmd:"" help:"Send Graphite lines, as a fleet of agents does."`
	RemoteWrite loadRemoteWriteCmd `cmd:"" name:"remote-write" help:"Send remote write 1.0 requests, as a Prometheus does that scrapes a fleet of targets."`
}

// errVerification makes the process end with status 1; the report has said what is amiss.
var errVerification = errors.New("verification failed")

// loadTiming holds the flags that set pace, length and times.
type loadTiming struct {
	Rate     *float64        `help:"Samples a second, spread evenly, instead of an interval; 0: as fast as the server takes them."`
	Rounds   int             `help:"Samples to send for each series. 0: until the duration is over."`
	Duration config.Duration `help:"How long to send. 0: until the rounds are complete, or for ever."`
	Start    string          `help:"Time of the first samples: 2026-03-01T12:00:00Z, Unix seconds, or -6h. Default: so that the last ones are of now."`
	Step     config.Duration `help:"Time between the samples of a series. Default: the interval; 1s if there is none."`
}

func (t *loadTiming) schedule(interval config.Duration, series int64, unit time.Duration) (load.Schedule, error) {
	now := time.Now()
	timing := load.Timing{Interval: interval.Std(), Rounds: t.Rounds, Duration: t.Duration.Std(), Step: t.Step.Std()}
	if t.Rate != nil {
		timing.Rate, timing.Interval = *t.Rate, 0
	}
	if t.Start != "" {
		var err error
		if timing.Start, err = parseTime(t.Start, now); err != nil {
			return load.Schedule{}, fmt.Errorf("--start: %w", err)
		}
	}
	return timing.Schedule(now, series, unit)
}

// loadOutcome holds the flags that say what to keep, to verify and to print.
type loadOutcome struct {
	State        string `help:"File that records what was acknowledged, for --verify-only after the server was killed." type:"path"`
	Verify       int64  `help:"Series to read back and compare bit for bit after the load."`
	VerifyCounts bool   `help:"Compare the number of stored samples with the number of acknowledged ones, metric by metric."`
	VerifyOnly   bool   `help:"Send nothing; verify what the state file says was sent, whatever the other flags of shape and time."`
	VerifyChunk  int64  `default:"1000000" help:"Samples that one query of --verify-counts may read."`
	VerifyDraw   uint64 `default:"1" help:"Another number draws other series for --verify."`
	QueryURL     string `default:"http://127.0.0.1:9480" help:"Server to read back from, over Prometheus' HTTP API."`
	Tenant       string `help:"Tenant to write and read as; sent as X-Scope-OrgID."`
	JSON         bool   `name:"json" help:"Print the summary as JSON."`
	Quiet        bool   `help:"Show no progress."`
}

func (o *loadOutcome) progress(p *process) load.Progress {
	if o.Quiet {
		return load.Progress{}
	}
	f, ok := p.stderr.(*os.File)
	if !ok {
		return load.Progress{Out: p.stderr}
	}
	info, err := f.Stat()
	return load.Progress{Out: f, Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// createState makes the state file if one is asked for.
func (o *loadOutcome) createState(h load.Header) (*load.StateWriter, error) {
	if o.State == "" {
		return nil, nil
	}
	return load.CreateState(vfs.Default, o.State, h)
}

// meter shows a load by its samples if their number is known, else by its time.
func (t *loadTiming) meter(name string, series int64, tally *load.Tally) load.Meter {
	m := load.Meter{Name: name, Detail: tally.Detail(), Read: tally.Sent, Total: series * int64(t.Rounds)}
	if t.Rounds == 0 {
		began := time.Now()
		m.Read, m.Total = func() int64 { return time.Since(began).Milliseconds() }, t.Duration.Std().Milliseconds()
	}
	return m
}

// finish verifies what was sent, prints the summary and says whether all is well.
func (o *loadOutcome) finish(ctx context.Context, p *process, state *load.State, report *load.Report, sentBefore uint64, runErr error) error {
	if report == nil {
		return runErr
	}
	if runErr == nil && (o.Verify > 0 || o.VerifyCounts) {
		report.Verified, runErr = o.verify(ctx, p, state, sentBefore)
	}
	if err := o.print(p, report); err != nil {
		return err
	}
	if runErr == nil && report.Verified != nil && !report.Verified.OK() {
		return errVerification
	}
	return runErr
}

func (o *loadOutcome) print(p *process, report *load.Report) error {
	if !o.JSON {
		return report.WriteText(p.stdout)
	}
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	return e.Encode(report)
}

// verifyConcurrency is enough to hide the time that answers take; more would only measure the server.
const verifyConcurrency = 8

func (o *loadOutcome) verify(ctx context.Context, p *process, state *load.State, sentBefore uint64) (*load.Verification, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: verifyConcurrency}
	defer transport.CloseIdleConnections()
	tally := &load.Tally{}
	v := load.Verifier{
		Reader: load.Reader{URL: o.QueryURL, Tenant: o.Tenant, Client: &http.Client{Transport: transport}, Patience: time.Minute},
		State:  state, Series: o.Verify, Draw: o.VerifyDraw, Counts: o.VerifyCounts, Chunk: o.VerifyChunk,
		SentBefore: sentBefore, Concurrency: verifyConcurrency, Done: tally.Compared,
	}
	var out *load.Verification
	var err error
	meter := load.Meter{Name: "verify", Total: o.Verify, Read: tally.Sent, Detail: func() string { return strconv.FormatInt(tally.Sent(), 10) + " series" }}
	o.progress(p).During(meter, func() { out, err = v.Run(ctx) })
	return out, err
}

// verifyOnly verifies what a state file says.
func (o *loadOutcome) verifyOnly(ctx context.Context, p *process, sentBefore uint64) error {
	if o.State == "" || o.Verify == 0 && !o.VerifyCounts {
		return usageError{errors.New("--verify-only needs --state, and --verify or --verify-counts")}
	}
	state, err := load.LoadState(vfs.Default, o.State)
	if err != nil {
		return err
	}
	return o.finish(ctx, p, state, &load.Report{}, sentBefore, nil)
}

// loadGraphiteCmd is shale load graphite.
type loadGraphiteCmd struct {
	Target        string          `default:"127.0.0.1:2003" help:"Address to send to."`
	Prefix        string          `default:"load" help:"First nodes of all names: <prefix>.agent.<id>.metrics.<n>."`
	Agents        int             `default:"100" help:"Number of agents."`
	Metrics       int             `default:"1000" help:"Metrics of each agent."`
	FlushInterval config.Duration `default:"10s" help:"Time between two flushes of an agent; the agents take turns."`
	Connections   int             `default:"4" help:"Connections, which stay open; at most one for each agent."`
	UDP           bool            `name:"udp" help:"Send datagrams."`
	Seed          uint64          `default:"1" help:"Another seed gives other values."`
	Value         load.ValueModel `default:"int100" help:"How values move: int100, counter, gauge or random."`
	MetricsURL    string          `default:"http://127.0.0.1:9480/metrics" help:"Where the server counts what it has received; asked each second for --state and --verify. Empty: never."`
	SentBefore    uint64          `help:"Points that the server must have, whatever its counter said; with one connection, the first ones sent."`
	loadTiming    `embed:""`
	loadOutcome   `embed:""`
}

// Help teaches the command by examples.
func (*loadGraphiteCmd) Help() string {
	return `100,000 names, each flushed once every 10 seconds, for a minute, then 1,000 of them read back:

    shale load graphite --duration 1m --verify 1000

The same names as fast as the server takes them, 60 points each:

    shale load graphite --rate 0 --rounds 60

What must have survived when the server is killed during the load:

    shale load graphite --rate 100000 --duration 30s --state /tmp/load.state   # and kill -9 the server meanwhile
    shale load graphite --verify-only --state /tmp/load.state --verify 1000 --verify-counts`
}

// Run sends the load and verifies it.
func (c *loadGraphiteCmd) Run(ctx context.Context, p *process) (err error) {
	if c.VerifyOnly {
		return c.verifyOnly(ctx, p, c.SentBefore)
	}
	tally := &load.Tally{}
	l := load.Graphite{
		Agents: load.Agents{
			Seed: c.Seed, Prefix: c.Prefix, Agents: c.Agents, Metrics: c.Metrics,
			Connections: min(c.Connections, c.Agents), UDP: c.UDP, Value: c.Value,
		},
		Target: c.Target, Smooth: c.Rate != nil, Tally: tally,
	}
	if c.State != "" || c.Verify > 0 || c.VerifyCounts {
		l.MetricsURL = c.MetricsURL
	}
	if err := l.Check(); err != nil {
		return usageError{err}
	}
	if l.Schedule, err = c.schedule(c.FlushInterval, l.Agents.Total(), time.Second); err != nil {
		return usageError{err}
	}
	if l.State, err = c.createState(l.Header()); err != nil {
		return err
	}
	var state *load.State
	var report *load.Report
	c.progress(p).During(c.meter("graphite", l.Agents.Total(), tally), func() { state, report, err = l.Run(ctx) })
	if cerr := l.State.Close(); err == nil {
		err = cerr
	}
	return c.finish(ctx, p, state, report, c.SentBefore, err)
}

// loadRemoteWriteCmd is shale load remote-write.
type loadRemoteWriteCmd struct {
	URL         string          `default:"http://127.0.0.1:9480/api/v1/write" help:"Endpoint to send to."`
	Targets     int             `default:"10" help:"Targets that are scraped."`
	Metrics     int             `default:"100" help:"Metrics of each target."`
	Series      int             `default:"10" help:"Series of each metric of a target."`
	Labels      int             `default:"10" help:"Constant labels of each series, beside the six that tell series apart."`
	Name        string          `default:"load_metric" help:"First part of the names of metrics."`
	Interval    config.Duration `default:"15s" help:"Time between two samples of a series; requests are spread evenly over it."`
	Batch       int             `default:"2000" help:"Series in one request."`
	Concurrency int             `default:"4" help:"Requests at a time. Each series keeps to one sender, so its samples stay in order."`
	RetryOn429  bool            `name:"retry-on-http-429" help:"Send again what a limit of the tenant refused, which a Prometheus drops by default."`
	Seed        uint64          `default:"1" help:"Another seed gives other series and values."`
	Value       load.ValueModel `default:"int100" help:"How values move: int100, counter, gauge or random."`
	loadTiming  `embed:""`
	loadOutcome `embed:""`
}

// Help teaches the command by examples.
func (*loadRemoteWriteCmd) Help() string {
	return `A million series, ten samples each, as fast as the server takes them, then all counts and 10,000 series compared:

    shale load remote-write --targets 1000 --metrics 10 --series 100 --rate 0 --rounds 10 --verify 10000 --verify-counts

What must have survived when the server is killed during the load:

    shale load remote-write --rate 100000 --duration 30s --state /tmp/load.state   # and kill -9 the server meanwhile
    shale load remote-write --verify-only --state /tmp/load.state --verify 10000 --verify-counts`
}

// Run sends the load and verifies it.
func (c *loadRemoteWriteCmd) Run(ctx context.Context, p *process) (err error) {
	if c.VerifyOnly {
		return c.verifyOnly(ctx, p, 0)
	}
	tally := &load.Tally{}
	l := load.RemoteWrite{
		Fleet: load.Fleet{
			Seed: c.Seed, Targets: c.Targets, Metrics: c.Metrics, Series: c.Series, Labels: c.Labels, Name: c.Name, Value: c.Value,
		},
		URL: c.URL, Tenant: c.Tenant, UserAgent: "shale-load/" + version, Batch: c.Batch, Concurrency: c.Concurrency,
		RetryOn429: c.RetryOn429, Tally: tally,
	}
	if err := l.Check(); err != nil {
		return usageError{err}
	}
	if l.Schedule, err = c.schedule(c.Interval, l.Fleet.Total(), time.Millisecond); err != nil {
		return usageError{err}
	}
	if l.State, err = c.createState(l.Header()); err != nil {
		return err
	}
	var state *load.State
	var report *load.Report
	c.progress(p).During(c.meter("remote-write", l.Fleet.Total(), tally), func() { state, report, err = l.Run(ctx) })
	if cerr := l.State.Close(); err == nil {
		err = cerr
	}
	return c.finish(ctx, p, state, report, 0, err)
}
