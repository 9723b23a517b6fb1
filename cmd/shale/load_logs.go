package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/progress"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/verify"
	"github.com/shaledb/shale/internal/load/wire"
	"github.com/shaledb/shale/internal/terminal/moment"
)

// loadLogsCmd is shale load logs.
type loadLogsCmd struct {
	URL    string          `default:"http://127.0.0.1:9480/loki/api/v1/push" placeholder:"URL" help:"Loki push endpoint to send to; without a path, /loki/api/v1/push."`
	Format wire.PushFormat `default:"protobuf" help:"Form of pushes: protobuf (with snappy, as agents send) or json."`

	Streams   int       `default:"400" placeholder:"N" help:"Number of streams. Each pod of an app has four, one per level."`
	Pods      int       `default:"5" placeholder:"N" help:"Number of pods per app, each on a different node."`
	PerNode   int       `default:"20" placeholder:"N" help:"Number of streams per node. One push has the lines of one node."`
	PushLines int       `default:"4400" placeholder:"N" help:"Approximate number of lines per push; 4400 are about 1 MB."`
	Mix       lines.Mix `default:"json=50,logfmt=30,access=20" help:"Weights of the line formats: json, logfmt, access (web server), text (free text, as a Java program writes)."`
	Metadata  float64   `placeholder:"SHARE" help:"Share of lines with structured metadata (a trace_id and a shard)."`
	Equal     float64   `name:"equal-times" placeholder:"SHARE" help:"Share of lines with the same time as the line before."`
	Ooo       lateness  `name:"ooo" placeholder:"SHARE:TIME" help:"Out-of-order lines: this share has times up to this much earlier than the lines before, such as 0.1:30m."`
	Dup       float64   `placeholder:"SHARE" help:"Duplicate lines: this share is sent twice, half of it within one push and half in the next push of the node. A server keeps each line once."`
	Seed      uint64    `default:"1" placeholder:"N" help:"Seed of the lines. It is part of the cluster label (load-1), so that loads do not mix."`
	From      string    `type:"existingdir" placeholder:"DIR" help:"Push the lines of the files in a folder instead, unchanged, one stream per file. With --mb, repeat them until that many are sent."`

	MB          float64         `name:"mb" placeholder:"MB" help:"Approximate megabytes (10^6 bytes) of lines to send. 0: until --duration is over; such a load has no needles to search for."`
	Rate        float64         `placeholder:"MB/s" help:"Megabytes of lines per second. 0: as fast as the server accepts them."`
	Duration    config.Duration `placeholder:"TIME" help:"How long to send. 0: until everything is sent, or without end."`
	Span        config.Duration `placeholder:"TIME" help:"Length of the time range of all lines, which ends now. Default: 6h; with --rate, the time that sending takes; without --mb, from an hour ago onwards."`
	Start       string          `placeholder:"TIME" help:"Time of the first lines: a date, a local time, RFC 3339, Unix seconds, or relative such as -6h. Default: chosen so that the last lines have the current time."`
	Concurrency int             `default:"3" placeholder:"N" help:"Number of concurrent pushes. A stream always uses the same sender, so its lines arrive in order."`

	State      string `placeholder:"FILE" help:"File to record acknowledgements in, for a later --verify-only, such as after the server was killed." type:"path"`
	Verify     bool   `help:"Read all lines back after the load and compare them byte for byte: none missing, none twice, in order."`
	VerifyOnly bool   `help:"Send nothing; verify the load that --state describes. Flags of shape and time are ignored."`
	Nodes      int64  `name:"verify-nodes" placeholder:"N" help:"Number of nodes to read back, drawn at random. 0: all."`
	Page       int    `name:"verify-page" default:"5000" placeholder:"N" help:"Lines per query, at most the limit of the server."`
	QueryURL   string `default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to read back from, over the Loki HTTP API."`
	Tenant     string `placeholder:"NAME" help:"Tenant to write and read as (X-Scope-OrgID)."`
	JSON       bool   `name:"json" help:"Print the summary as JSON."`
	Quiet      bool   `help:"Show no progress."`
	loadAccess `embed:""`
}

// AfterApply completes the URL.
func (c *loadLogsCmd) AfterApply() error {
	c.URL = withPath(c.URL, "/loki/api/v1/push")
	return c.read()
}

// Help teaches the command by examples.
func (*loadLogsCmd) Help() string {
	return `Send a gigabyte of mixed lines in 400 streams over six hours, then read every line back and compare it:

    shale load logs --mb 1000 --verify

Send 5 MB per second in real time, with structured metadata, late lines and duplicates:

    shale load logs --rate 5 --duration 1m --metadata 0.3 --ooo 0.05:10m --dup 0.05 --equal-times 0.1 --verify

Send the lines of real files, unchanged:

    shale load logs --from /var/log --verify

Send a million streams with a few lines each:

    shale load logs --streams 1000000 --per-node 200 --push-lines 600 --mb 500

Check what survived after the server was killed during the load:

    shale load logs --duration 30s --state /tmp/logs.state   # kill -9 the server meanwhile
    shale load logs --verify-only --state /tmp/logs.state`
}

// load returns the load with its schedule, but without its state file.
func (c *loadLogsCmd) load(now time.Time) (*send.Logs, error) {
	l := &send.Logs{
		Logs: lines.Shape{
			Seed: c.Seed, Streams: c.Streams, Pods: c.Pods, PerNode: c.PerNode, Lines: c.PushLines, Mix: c.Mix, Metadata: c.Metadata,
			Equal: c.Equal, Late: pace.Lateness(c.Ooo), Twice: c.Dup,
		},
		FS: vfs.Default, URL: c.URL, Tenant: c.Tenant, Token: c.Token, UserAgent: "shale-load/" + version, Format: c.Format, Concurrency: c.Concurrency, Tally: &send.LogsTally{},
	}
	if !(c.MB >= 0 && c.MB < 1e9) || !(c.Rate >= 0) {
		return nil, errors.New("--mb and --rate must not be negative")
	}
	window, err := c.size(l)
	if err != nil {
		return nil, err
	}
	timing := pace.Timing{Rounds: l.Logs.Windows, Duration: c.Duration.Std()}
	if c.Rate > 0 {
		timing.Interval = max(1, time.Duration(float64(window)/c.Rate*1e3))
	}
	span := c.Span.Std()
	if span == 0 && c.Rate == 0 && timing.Rounds > 0 {
		span = defaultSpan
	}
	if span > 0 {
		rounds := time.Duration(max(1, timing.Rounds))
		if timing.Rounds == 0 {
			return nil, errors.New("--span needs --mb, because the span is divided by the number of pushes")
		}
		timing.Step = max(1, span/rounds)
	}
	if c.Rate > 0 && span == 0 {
		timing.Start = now.Add(-timing.Interval) // a window is sent when it ends, the first one at once
	}
	if c.Start != "" {
		if timing.Start, err = moment.Parse(c.Start, now); err != nil {
			return nil, fmt.Errorf("--start: %w", err)
		}
	}
	if l.Schedule, err = timing.Schedule(now, 1, 1); err != nil {
		return nil, err
	}
	return l, l.Check()
}

const defaultSpan = 6 * time.Hour

// size sets the number of windows by --mb and --from, and returns the bytes of lines of a window.
func (c *loadLogsCmd) size(l *send.Logs) (window int64, err error) {
	if c.From == "" {
		if err := l.Logs.Check(); err != nil {
			return 0, err
		}
		window = max(1, l.Logs.Sized())
		if c.MB > 0 {
			l.Logs.Windows = max(1, int(c.MB*1e6/float64(window)+0.5))
		}
		return window, nil
	}
	files, size, err := lines.FilesOf(vfs.Default, c.From)
	if err != nil {
		return 0, err
	}
	l.Logs.Files, l.Logs.Streams, l.Logs.Pods, l.Logs.PerNode = files, len(files), 1, 1
	l.Logs.For(max(1, int(c.MB*1e6/float64(max(1, size))+0.5)))
	return max(1, size*int64(l.Logs.Repeat)/int64(l.Logs.Windows)), nil
}

// Run sends the load and verifies it.
func (c *loadLogsCmd) Run(ctx context.Context, p *process) error {
	out := loadOutcome{State: c.State, JSON: c.JSON, Quiet: c.Quiet}
	if c.VerifyOnly {
		if c.State == "" {
			return usageError{errors.New("--verify-only needs --state")}
		}
		state, err := statefile.Load(vfs.Default, c.State)
		if err != nil {
			return err
		}
		return c.finish(ctx, p, &out, state, &send.LogsReport{}, nil)
	}
	l, err := c.load(time.Now())
	if err != nil {
		return usageError{err}
	}
	if l.State, err = out.createState(l.Header()); err != nil {
		return err
	}
	var state *statefile.State
	var report *send.LogsReport
	meter := progress.Meter{Name: "logs", Detail: l.Tally.Detail(), Read: l.Tally.Pushes.Load, Total: l.Pushes()}
	if began := time.Now(); meter.Total == 0 {
		meter.Read, meter.Total = func() int64 { return time.Since(began).Milliseconds() }, c.Duration.Std().Milliseconds()
	}
	out.progress(p).During(meter, func() { state, report, err = l.Run(ctx) })
	if cerr := l.State.Close(); err == nil {
		err = cerr
	}
	return c.finish(ctx, p, &out, state, report, err)
}

// finish verifies the load, prints the summary and returns the verdict.
func (c *loadLogsCmd) finish(ctx context.Context, p *process, out *loadOutcome, state *statefile.State, report *send.LogsReport, err error) error {
	if report == nil {
		return err
	}
	all := struct {
		*send.LogsReport
		Lines *verify.Lines `json:"verification_of_lines,omitempty"`
	}{LogsReport: report}
	var reports []textReport
	if report.Kind != "" {
		reports = append(reports, report)
	}
	if err == nil && (c.Verify || c.VerifyOnly) {
		if all.Lines, err = c.verify(ctx, p, out, state); all.Lines != nil {
			reports = append(reports, all.Lines)
		}
	}
	if perr := out.printReport(p, all, reports...); perr != nil {
		return perr
	}
	switch {
	case err != nil:
		return err
	case all.Lines != nil && !all.Lines.OK():
		return errVerification
	case report.Sent > 0 && report.Acked == 0:
		return fmt.Errorf("nothing was accepted: %s", report.LastError)
	}
	return nil
}

func (c *loadLogsCmd) verify(ctx context.Context, p *process, out *loadOutcome, state *statefile.State) (*verify.Lines, error) {
	server, hangUp := c.readFrom(c.QueryURL, c.Tenant)
	defer hangUp()
	var read atomic.Int64
	v := verify.LineVerifier{
		Server: server, State: state, FS: vfs.Default, Nodes: c.Nodes, Draw: 1, Page: c.Page, Concurrency: verifyConcurrency, Done: func(lines int) { read.Add(int64(lines)) },
	}
	var found *verify.Lines
	var err error
	meter := progress.Meter{Name: "verify", Read: read.Load, Detail: func() string { return fmt.Sprintf("%d lines", read.Load()) }}
	out.progress(p).During(meter, func() { found, err = v.Run(ctx) })
	return found, err
}
