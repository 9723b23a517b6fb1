package main

import (
	"context"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/tally"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/verify"
)

// loadGraphiteCmd is shale load graphite.
type loadGraphiteCmd struct {
	Target         string                 `placeholder:"HOST:PORT" help:"Address to send to. Default: 127.0.0.1:2003, and port 2004 for pickle."`
	Protocol       fleet.GraphiteProtocol `default:"plain" help:"Form of points: plain (lines), tagged (lines with tags: <prefix>.metrics.<n>;agent=<id>;region=eu-north-1), or pickle (messages of up to 500 points, as carbon relays send)."`
	Prefix         string                 `default:"load" placeholder:"NAME" help:"First nodes of all metric names: <prefix>.agent.<id>.metrics.<n>."`
	Agents         int                    `default:"100" placeholder:"N" help:"Number of agents."`
	Metrics        int                    `default:"1000" placeholder:"N" help:"Metrics of each agent."`
	FlushInterval  config.Duration        `default:"10s" placeholder:"TIME" help:"Time between two flushes of an agent. The agents take turns within it."`
	SpawnInterval  config.Duration        `placeholder:"TIME" help:"Time between two agent launches, as in haggar. Each agent has its own connection and first flushes one flush interval after its launch. 0: launch all at once."`
	SpawnJitter    config.Duration        `placeholder:"TIME" help:"Most that a launch may be early or late, up to --spawn-interval. Without jitter, agents launched a multiple of the flush interval apart flush together."`
	Connections    int                    `default:"4" placeholder:"N" help:"Number of connections that stay open, at most one per agent."`
	NewConnections bool                   `help:"Open a new connection for each flush, as haggar does by default."`
	UDP            bool                   `name:"udp" help:"Send over UDP instead of TCP."`
	Seed           uint64                 `default:"1" placeholder:"N" help:"Seed of the values."`
	Value          values.ValueModel      `default:"int100" help:"Model of the values: int100 (integers of 0-99), counter, gauge (straight lines), walk (random walk), random or float (all bits random), or const."`
	Ooo            lateness               `name:"ooo" placeholder:"SHARE:TIME" help:"Out-of-order points: each flush holds back this share of its points and sends them this much later, such as 0.1:30m."`
	Dup            float64                `placeholder:"SHARE" help:"Duplicate points: each flush repeats this share of its points."`
	MetricsURL     string                 `default:"http://127.0.0.1:9480/metrics" placeholder:"URL" help:"Metrics page with the server's counter of received points, read every second for --state and --verify. Empty: not read."`
	SentBefore     uint64                 `placeholder:"N" help:"Number of points that the server must have, instead of the number its counter showed. With one connection these are the first points sent."`
	loadTiming     `embed:""`
	loadOutcome    `embed:""`
}

// AfterApply reads the token.
func (c *loadGraphiteCmd) AfterApply() error { return c.read() }

// Help teaches the command by examples.
func (*loadGraphiteCmd) Help() string {
	return `Flush 100,000 metrics every 10 seconds for a minute, then read 1,000 of them back:

    shale load graphite --duration 1m --verify 1000

Send 60 points of each metric as fast as the server accepts them:

    shale load graphite --rate 0 --rounds 60

Imitate haggar with its defaults: agents of 10,000 metrics, launched one by one, a new connection for each flush:

    shale load graphite --metrics 10000 --spawn-interval 10s --spawn-jitter 10s --new-connections

Check what survived after the server was killed during the load:

    shale load graphite --rate 100000 --duration 30s --state /tmp/load.state   # kill -9 the server meanwhile
    shale load graphite --verify-only --state /tmp/load.state --verify 1000 --verify-counts`
}

// load returns the load without its schedule and state file.
func (c *loadGraphiteCmd) load() *send.Graphite {
	l := &send.Graphite{
		Agents: fleet.Agents{
			Seed: c.Seed, Prefix: c.Prefix, Agents: c.Agents, Metrics: c.Metrics, Connections: min(c.Connections, c.Agents),
			Protocol: c.Protocol, UDP: c.UDP, Value: c.Value,
			Disorder: fleet.Disorder{Late: pace.Lateness(c.Ooo), Twice: c.Dup},
		},
		Target: c.Target, NewConnections: c.NewConnections, Smooth: c.Rate != nil, Tally: &tally.Tally{},
	}
	if l.Target == "" {
		l.Target = fmt.Sprintf("127.0.0.1:%d", c.Protocol.Port())
	}
	if c.SpawnInterval > 0 || c.SpawnJitter > 0 {
		l.Agents.Connections = c.Agents
		l.Agents.Spawn = fleet.Spawn{Interval: c.SpawnInterval.Std(), Jitter: c.SpawnJitter.Std(), Flush: c.FlushInterval.Std()}
	}
	if c.State != "" || c.Verify > 0 || c.VerifyCounts {
		l.MetricsURL, l.MetricsToken = c.MetricsURL, c.Token
	}
	return l
}

// Run sends the load and verifies it.
func (c *loadGraphiteCmd) Run(ctx context.Context, p *process) (err error) {
	if c.VerifyOnly {
		return c.verifyOnly(ctx, p, c.SentBefore)
	}
	l := c.load()
	if err := l.Check(); err != nil {
		return usageError{err}
	}
	if l.Schedule, err = c.schedule(c.FlushInterval, l.Agents.Total(), time.Second); err != nil {
		return usageError{err}
	}
	if l.State, err = c.createState(l.Header()); err != nil {
		return err
	}
	var state *statefile.State
	var report *send.GraphiteReport
	c.progress(p).During(c.meter("graphite", l.Agents.Total(), l.Tally), func() { state, report, err = l.Run(ctx) })
	if cerr := l.State.Close(); err == nil {
		err = cerr
	}
	if report == nil {
		return err
	}
	all := struct {
		*send.GraphiteReport
		Verified *verify.Samples `json:"verification,omitempty"`
	}{GraphiteReport: report}
	reports := []textReport{report}
	if err == nil {
		if all.Verified, err = c.verifyIfAsked(ctx, p, state, c.SentBefore); all.Verified != nil {
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
