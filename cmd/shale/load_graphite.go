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
	Protocol       fleet.GraphiteProtocol `default:"plain" help:"How points are written: plain lines, tagged (lines whose names have tags: <prefix>.metrics.<n>;agent=<id>;region=eu-north-1), or pickle (messages of up to 500 points, as carbon's relays send)."`
	Prefix         string                 `default:"load" help:"First nodes of all names: <prefix>.agent.<id>.metrics.<n>."`
	Agents         int                    `default:"100" help:"Number of agents."`
	Metrics        int                    `default:"1000" help:"Metrics of each agent."`
	FlushInterval  config.Duration        `default:"10s" help:"Time between two flushes of an agent; the agents take turns."`
	SpawnInterval  config.Duration        `help:"Launch the agents one by one, so far apart, as haggar does; each has a connection of its own and flushes for the first time one flush interval later. 0: all at once."`
	SpawnJitter    config.Duration        `help:"By how much a launch may be early or late, at most --spawn-interval. Without it, agents whose launches are flush intervals apart flush all at the same moment."`
	Connections    int                    `default:"4" help:"Connections, which stay open; at most one for each agent."`
	NewConnections bool                   `help:"Connect anew for each flush of an agent, as haggar does by default."`
	UDP            bool                   `name:"udp" help:"Send datagrams."`
	Seed           uint64                 `default:"1" help:"Another seed gives other values."`
	Value          values.ValueModel      `default:"int100" help:"How values move: int100 (integers of 0-99), counter, gauge (straight lines), walk (random walk), random or float (all bits random), or const."`
	Ooo            lateness               `name:"ooo" placeholder:"SHARE:TIME" help:"Out-of-order: each flush puts off this share of its points and sends them so much later, behind newer ones, such as 0.1:30m."`
	Dup            float64                `placeholder:"SHARE" help:"Duplicates: each flush repeats this share of its points."`
	MetricsURL     string                 `default:"http://127.0.0.1:9480/metrics" help:"Where the server counts what it has received; asked each second for --state and --verify. Empty: never."`
	SentBefore     uint64                 `help:"Points that the server must have, whatever its counter said; with one connection, the first ones sent."`
	loadTiming     `embed:""`
	loadOutcome    `embed:""`
}

// Help teaches the command by examples.
func (*loadGraphiteCmd) Help() string {
	return `100,000 names, each flushed once every 10 seconds, for a minute, then 1,000 of them read back:

    shale load graphite --duration 1m --verify 1000

The same names as fast as the server takes them, 60 points each:

    shale load graphite --rate 0 --rounds 60

As haggar with its defaults: agents of 10,000 metrics, launched one by one, each flush over a new connection:

    shale load graphite --metrics 10000 --spawn-interval 10s --spawn-jitter 10s --new-connections

What must have survived when the server is killed during the load:

    shale load graphite --rate 100000 --duration 30s --state /tmp/load.state   # and kill -9 the server meanwhile
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
		l.MetricsURL = c.MetricsURL
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
