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
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/progress"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/tally"
	"github.com/shaledb/shale/internal/load/target"
	"github.com/shaledb/shale/internal/load/verify"
	"github.com/shaledb/shale/internal/terminal"
	"github.com/shaledb/shale/internal/terminal/moment"
)

// loadCmd generates load for a server and verifies what it stored.
type loadCmd struct {
	Graphite    loadGraphiteCmd    `cmd:"" help:"Send Graphite lines or pickles, as a fleet of agents."`
	RemoteWrite loadRemoteWriteCmd `cmd:"" name:"remote-write" help:"Send remote write requests, as a Prometheus or vmagent that scrapes a fleet of targets."`
	Logs        loadLogsCmd        `cmd:"" help:"Push log lines to a Loki push endpoint, as the agents of a cluster."`
	Target      loadTargetCmd      `cmd:"" help:"Serve a simulated fleet of scrape targets."`
}

// withPath adds the path of an endpoint to the URL of a server that has none.
func withPath(text, path string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Path != "" || u.Scheme != "http" && u.Scheme != "https" {
		return text
	}
	u.Path = path
	return u.String()
}

// loadAccess is what lets a load in, and what reads it back.
type loadAccess struct {
	Token     string `placeholder:"TOKEN" help:"Token that the server requires, to write and to read back. Other users of this machine can see it: prefer --token-file."`
	TokenFile string `name:"token-file" env:"SHALE_TOKEN_FILE" placeholder:"FILE" help:"File with the token."`
}

// read reads the token.
func (a *loadAccess) read() error {
	if a.Token == "" && a.TokenFile != "" {
		var err error
		if a.Token, err = client.ReadToken(a.TokenFile); err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
	}
	if strings.ContainsAny(a.Token, " \r\n") {
		return errors.New("--token: expected one token")
	}
	return nil
}

// errVerification makes the process end with status 1; the report shows the differences.
var errVerification = errors.New("verification failed")

// loadTiming holds the flags that set pace, length and times.
type loadTiming struct {
	Rate     *float64        `placeholder:"RATE" help:"Samples per second, evenly spread; replaces the interval. 0: as fast as the server accepts them."`
	Rounds   int             `placeholder:"N" help:"Samples to send per series; targets or agents that start later send fewer. 0: until --duration is over."`
	Duration config.Duration `placeholder:"TIME" help:"How long to send. 0: until all rounds are sent, or without end."`
	Start    string          `placeholder:"TIME" help:"Time of the first samples: a date, a local time, RFC 3339, Unix seconds, or relative such as -6h. Default: chosen so that the last samples have the current time."`
	Step     config.Duration `placeholder:"TIME" help:"Time between two samples of a series. Default: the interval, or 1s without one."`
}

func (t *loadTiming) schedule(interval config.Duration, series int64, unit time.Duration) (pace.Schedule, error) {
	now := time.Now()
	timing := pace.Timing{Interval: interval.Std(), Rounds: t.Rounds, Duration: t.Duration.Std(), Step: t.Step.Std()}
	if t.Rate != nil {
		timing.Rate, timing.Interval = *t.Rate, 0
	}
	if t.Start != "" {
		var err error
		if timing.Start, err = moment.Parse(t.Start, now); err != nil {
			return pace.Schedule{}, fmt.Errorf("--start: %w", err)
		}
	}
	return timing.Schedule(now, series, unit)
}

// loadOutcome holds the flags that say what to record, verify and print.
type loadOutcome struct {
	State           string      `placeholder:"FILE" help:"File to record acknowledgements in, for a later --verify-only, such as after the server was killed." type:"path"`
	Verify          int64       `placeholder:"N" help:"Number of series to read back after the load and compare bit for bit, with all of their cycles."`
	VerifyCounts    bool        `help:"Compare the number of stored samples of each metric with the number acknowledged."`
	VerifyOver      verify.Over `default:"auto" help:"API to read series back with: query (PromQL, without stale markers and whole histograms), remote-read (everything), or auto (whichever the load needs)."`
	VerifyGroups    bool        `help:"With --verify: read all series of a metric and target with one query. Far faster in a large store."`
	VerifyExemplars bool        `help:"Also compare the exemplars of the --verify series, read from query_exemplars."`
	VerifyMetadata  bool        `help:"Also compare type, help and unit of the --verify series, read from the metadata endpoint."`
	VerifyOnly      bool        `help:"Send nothing; verify the load that --state describes. Flags of shape and time are ignored."`
	VerifyChunk     int64       `default:"1000000" placeholder:"N" help:"Most samples that one --verify-counts query may read."`
	VerifyDraw      uint64      `default:"1" placeholder:"N" help:"Seed that selects the series for --verify."`
	QueryURL        string      `default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to read back from, over the Prometheus HTTP API."`
	Tenant          string      `placeholder:"NAME" help:"Tenant to write and read as (X-Scope-OrgID). With several tenants a number is appended."`
	JSON            bool        `name:"json" help:"Print the summary as JSON."`
	Quiet           bool        `help:"Show no progress."`
	loadAccess      `embed:""`
}

func (o *loadOutcome) progress(p *process) progress.Progress {
	if o.Quiet {
		return progress.Progress{}
	}
	return p.progress()
}

// createState makes the state file if one is asked for.
func (o *loadOutcome) createState(h statefile.Header) (*statefile.Writer, error) {
	if o.State == "" {
		return nil, nil
	}
	return statefile.Create(vfs.Default, o.State, h)
}

// meter measures a load by its samples if their number is known, else by its time.
func (t *loadTiming) meter(name string, series int64, tally *tally.Tally) progress.Meter {
	m := progress.Meter{Name: name, Detail: tally.Detail(), Read: tally.Sent.Load, Total: series * int64(t.Rounds)}
	if t.Rounds == 0 {
		began := time.Now()
		m.Read, m.Total = func() int64 { return time.Since(began).Milliseconds() }, t.Duration.Std().Milliseconds()
	}
	return m
}

// textReport is a report for people.
type textReport interface{ WriteText(w io.Writer) }

// printReport prints all as one JSON object or, as text, one report after the other.
func (o *loadOutcome) printReport(p *process, all any, reports ...textReport) error {
	if o.JSON {
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		return e.Encode(all)
	}
	var text bytes.Buffer
	for _, r := range reports {
		r.WriteText(&text)
	}
	_, err := io.WriteString(p.stdout, terminal.EscapeLines(text.String())) // a report quotes the server
	return err
}

// verifyIfAsked reads back what was sent, if a flag asks for it.
func (o *loadOutcome) verifyIfAsked(ctx context.Context, p *process, state *statefile.State, sentBefore uint64) (*verify.Samples, error) {
	if o.Verify == 0 && !o.VerifyCounts {
		return nil, nil
	}
	return o.verify(ctx, p, state, sentBefore)
}

// nothingSent is the error of a load that never got a response.
func nothingSent(d *tally.Delivery, t *tally.Traffic, lastError string) error {
	if t.Faults > 0 && d.Acked+d.Dropped == 0 && d.Sent <= d.Lost {
		return fmt.Errorf("nothing could be sent: %s", lastError)
	}
	return nil
}

// verifyConcurrency is enough to hide the time that responses take; more would only measure the server.
const verifyConcurrency = 8

// readFrom returns the server to read back from, with the patience that a restart needs. hangUp closes its
// connections.
func (a *loadAccess) readFrom(url, tenant string) (server *client.Server, hangUp func()) {
	transport := &http.Transport{MaxIdleConnsPerHost: verifyConcurrency}
	server = &client.Server{
		URL: url, Tenant: tenant, HTTP: &http.Client{Transport: transport}, Timeout: 2 * time.Minute, Retry: &client.Retry{Patience: time.Minute},
	}
	server.Bearer(a.Token)
	return server, transport.CloseIdleConnections
}

func (o *loadOutcome) verify(ctx context.Context, p *process, state *statefile.State, sentBefore uint64) (*verify.Samples, error) {
	server, hangUp := o.readFrom(o.QueryURL, o.Tenant)
	defer hangUp()
	var compared atomic.Int64
	v := verify.SampleVerifier{
		Server: server, State: state, Series: o.Verify, Draw: o.VerifyDraw, Counts: o.VerifyCounts, Chunk: o.VerifyChunk,
		Over: o.VerifyOver, Groups: o.VerifyGroups, Exemplars: o.VerifyExemplars, Metadata: o.VerifyMetadata,
		SentBefore: sentBefore, Concurrency: verifyConcurrency, Done: func() { compared.Add(1) },
	}
	var out *verify.Samples
	var err error
	meter := progress.Meter{Name: "verify", Total: o.Verify, Read: compared.Load, Detail: func() string { return strconv.FormatInt(compared.Load(), 10) + " series" }}
	o.progress(p).During(meter, func() { out, err = v.Run(ctx) })
	return out, err
}

// verifyOnly verifies the load that a state file describes. The printed report of the load is empty.
func (o *loadOutcome) verifyOnly(ctx context.Context, p *process, sentBefore uint64) error {
	if o.State == "" || o.Verify == 0 && !o.VerifyCounts {
		return usageError{errors.New("--verify-only needs --state, and --verify or --verify-counts")}
	}
	state, err := statefile.Load(vfs.Default, o.State)
	if err != nil {
		return err
	}
	found, verifyErr := o.verify(ctx, p, state, sentBefore)
	return o.printVerification(p, found, verifyErr)
}

// printVerification prints a verification without a load.
func (o *loadOutcome) printVerification(p *process, found *verify.Samples, err error) error {
	all := struct {
		target.Report
		Verified *verify.Samples `json:"verification,omitempty"`
	}{Verified: found}
	var reports []textReport
	if found != nil {
		reports = append(reports, found)
	}
	if err := o.printReport(p, all, reports...); err != nil {
		return err
	}
	return verdict(found, err)
}

// verdict returns the error of a command that has verified.
func verdict(found *verify.Samples, err error) error {
	if err == nil && found != nil && !found.OK() {
		return errVerification
	}
	return err
}
