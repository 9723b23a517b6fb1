package show

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/shaledb/shale/internal/cache/ledger"
	"github.com/shaledb/shale/internal/cache/report"
	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/plot"
	"github.com/shaledb/shale/internal/terminal"
)

// cachePath is the endpoint of the report.
const cachePath = "/api/v1/cache"

// Server is the server to ask.
type Server struct {
	URL     string          `name:"url" default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to ask."`
	Timeout config.Duration `default:"30s" placeholder:"TIME" help:"How long to wait for the response."`

	client.Access `embed:""`
}

// Validate returns what is wrong with the flags.
func (f *Server) Validate() error {
	u, err := url.Parse(f.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--url: %q is not a URL such as http://127.0.0.1:9480", f.URL)
	}
	return nil
}

// get asks the server for a document.
func (f *Server) get(ctx context.Context, path string, form url.Values, patience time.Duration) ([]byte, error) {
	server := &client.Server{URL: f.URL}
	if err := server.Allow(&f.Access); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no response within %s (--timeout)", patience))
	defer cancel()
	body, err := server.Get(ctx, path, form)
	var status *client.StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		return nil, fmt.Errorf("%w; expected a server of Shale with a ledger of its cache", err)
	}
	return body, err
}

// Show has the flags of `shale cache`.
type Show struct {
	Server
	JSON  bool            `name:"json" help:"Print the report of the server as JSON, once."`
	Once  bool            `help:"Print once, in a terminal too."`
	Every config.Duration `default:"2s" placeholder:"TIME" help:"Interval of the display in a terminal."`
}

// Help teaches the command by examples.
func (*Show) Help() string {
	return `Watch the tiers of a server, the curves of its memory and its SSD, and the tenants that ask most:

    shale cache

Keep a report:

    shale cache --json > cache.json

docs/cache.md explains how to read it.`
}

// Run prints the report, or keeps it on the screen. The environment says what a terminal shows.
func (c *Show) Run(ctx context.Context, stdout io.Writer, environ []string) error {
	f, isFile := stdout.(*os.File)
	live := false
	if isFile && !c.Once && !c.JSON {
		info, err := f.Stat()
		live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	for {
		body, err := c.get(ctx, cachePath, nil, c.Timeout.Std())
		if err != nil {
			return err
		}
		if c.JSON {
			_, err := stdout.Write(body)
			return err
		}
		var r report.Report
		if err := json.Unmarshal(body, &r); err != nil {
			return fmt.Errorf("reading the report: %w", err)
		}
		if live {
			if _, err := io.WriteString(stdout, "\x1b[H\x1b[2J"); err != nil {
				return err
			}
		}
		if err := printCache(stdout, terminal.NewScreen(stdout, environ), &r); err != nil || !live {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(c.Every.Std(), 100*time.Millisecond)):
		}
	}
}

// WhatIf has the flags of `shale cache what-if`.
type WhatIf struct {
	Server
	RAM   string `name:"ram" placeholder:"SIZE" help:"The memory budget of the server: a multiple such as 2x, or a size such as 16GiB."`
	SSD   string `name:"ssd" placeholder:"SIZE" help:"The SSD cache: a multiple such as 4x, or a size such as 200GiB."`
	Hours int    `default:"24" placeholder:"N" help:"How many of the last hours of traffic to replay; at most 168 are kept."`
	JSON  bool   `name:"json" help:"Print the answer of the server as JSON."`
}

// Help teaches the command by examples.
func (*WhatIf) Help() string {
	return `What would four times the SSD bring, with the traffic of the last day?

    shale cache what-if --ssd 4x

And twice the memory, with the traffic of a week?

    shale cache what-if --ssd 4x --ram 2x --hours 168

Is an SSD cache worth buying where there is none?

    shale cache what-if --ssd 200GiB`
}

// Validate returns what is wrong with the flags.
func (c *WhatIf) Validate() error {
	if c.RAM == "" && c.SSD == "" {
		return errors.New("expected --ram or --ssd, such as --ssd 4x")
	}
	return c.Server.Validate()
}

// Run asks and prints.
func (c *WhatIf) Run(ctx context.Context, stdout io.Writer) error {
	form := url.Values{"hours": {fmt.Sprint(c.Hours)}}
	if c.RAM != "" {
		form.Set("ram", c.RAM)
	}
	if c.SSD != "" {
		form.Set("ssd", c.SSD)
	}
	body, err := c.get(ctx, cachePath+"/what-if", form, c.Timeout.Std())
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := stdout.Write(body)
		return err
	}
	var w report.WhatIf
	if err := json.Unmarshal(body, &w); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return printWhatIf(stdout, &w)
}

// Record has the flags of `shale cache record`.
type Record struct {
	Server
	For    config.Duration `default:"1m" placeholder:"TIME" help:"How long to record, at most 24h."`
	Max    config.Size     `default:"64MiB" placeholder:"SIZE" help:"Most bytes to record, at most 1GiB."`
	Output string          `short:"o" placeholder:"FILE" help:"File to write. Default: standard output."`
}

// Help teaches the command by examples.
func (*Record) Help() string {
	return `Record for ten minutes what queries ask for, and replay it through caches of other sizes and policies:

    shale cache record --for 10m -o trace.csv
    shale plan cache trace.csv --sizes 100MB,1GB --delay 0s

Keys and queries are hashed with a number that never leaves the server.`
}

// Run records, to the file if there is one.
func (c *Record) Run(ctx context.Context, stdout io.Writer) error {
	form := url.Values{"for": {c.For.String()}, "max-bytes": {c.Max.String()}}
	body, err := c.get(ctx, cachePath+"/record", form, c.For.Std()+c.Timeout.Std())
	if err != nil {
		return err
	}
	if c.Output == "" {
		_, err := stdout.Write(body)
		return err
	}
	return os.WriteFile(c.Output, body, 0o600)
}

// printCache writes the report for people.
func printCache(out io.Writer, screen terminal.Screen, r *report.Report) error {
	if _, err := fmt.Fprintf(out, "the last %s\n", time.Duration(r.HourSeconds*float64(time.Second)).Round(time.Second)); err != nil {
		return err
	}
	rows := [][]string{{"tier", "bytes", "of", "asked", "hit %", "first %", "byte %", "evicted", "churn %", "turns/h", "stays", "written", "p50"}}
	for i := range r.Tiers {
		rows = append(rows, tierRow(&r.Tiers[i]))
	}
	if err := terminal.Table(out, rows); err != nil {
		return err
	}
	if err := printAges(out, r.Ages); err != nil {
		return err
	}
	if err := printTenants(out, r); err != nil {
		return err
	}
	return printCurves(out, screen, r.Curves)
}

func tierRow(t *ledger.Row) []string {
	f := &t.Hour
	dash := func(known bool, text string) string {
		if !known {
			return ""
		}
		return text
	}
	source := t.Name == ledger.Bucket || t.Name == ledger.Local
	return []string{
		t.Name, dash(t.LimitBytes > 0, plot.Bytes(float64(t.Bytes))), dash(t.LimitBytes > 0, plot.Bytes(float64(t.LimitBytes))), fmt.Sprint(f.Asked),
		dash(!source && f.Asked > 0, percent(f.HitRatio)), dash(!source && f.First > 0, percent(f.FirstHitRatio)),
		dash(!source && f.AskedBytes > 0, percent(f.ByteHitRatio)),
		dash(!source, fmt.Sprint(f.Evicted)), dash(f.Evicted > 0, percent(f.Churn)), dash(f.Evicted > 0, fmt.Sprintf("%.3g", f.Turnovers)),
		dash(f.Residence > 0, time.Duration(f.Residence*float64(time.Second)).Round(time.Second).String()),
		dash(f.WrittenBytes > 0, plot.Bytes(float64(f.WrittenBytes))), dash(t.P50 > 0, time.Duration(t.P50*float64(time.Second)).String()),
	}
}

func percent(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

// printAges writes how old the data is that queries ask for.
func printAges(out io.Writer, ages []ledger.Age) error {
	rows := [][]string{{"data younger than", "first touches", "from the bucket"}}
	for _, a := range ages {
		if a.First == 0 {
			continue
		}
		name := "any"
		switch {
		case a.Local:
			name = "in the data folder"
		case a.Below > 0:
			name = config.Duration(time.Duration(a.Below) * time.Second).String()
		}
		rows = append(rows, []string{name, fmt.Sprint(a.First), fmt.Sprint(a.Bucket)})
	}
	if len(rows) == 1 {
		return nil
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return terminal.Table(out, rows)
}

// shownTenants is the number of tenants that are printed.
const shownTenants = 10

// printTenants writes the first-touch hit ratios of tenants since the start, if there are several.
func printTenants(out io.Writer, r *report.Report) error {
	if len(r.Tenants) < 2 {
		return nil
	}
	head := []string{"tenant"}
	for _, t := range r.Tenants[0].Tiers {
		if t.Name != ledger.Bucket && t.Name != ledger.Local {
			head = append(head, t.Name+" asked", "first %")
		}
	}
	rows := [][]string{head}
	for _, tenant := range r.Tenants[:min(len(r.Tenants), shownTenants)] {
		row := []string{terminal.EscapeLines(tenant.Name)}
		for _, t := range tenant.Tiers {
			if t.Name != ledger.Bucket && t.Name != ledger.Local {
				row = append(row, fmt.Sprint(t.Asked), percent(t.FirstHitRatio))
			}
		}
		rows = append(rows, row)
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return terminal.Table(out, rows)
}
