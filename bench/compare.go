package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/bench/fronts"
	"github.com/shaledb/shale/bench/renders"
	"github.com/shaledb/shale/bench/result"
)

// compareCmd is bench compare.
type compareCmd struct {
	Base    string   `default:"shale-base" help:"System to compare with."`
	Head    string   `default:"shale" help:"System to compare."`
	Out     string   `type:"path" placeholder:"DIR" help:"Folder for the input of benchstat, as <system>.txt. Default: it is not kept."`
	Results []string `arg:"" type:"existingfile" help:"Result files of bench run."`
}

// Help returns examples.
func (*compareCmd) Help() string {
	return `What has changed since the commit that was given as --base?

    go run ./bench compare bench-results/*.jsonl

How does Shale stand to VictoriaMetrics, with the spread of the runs?

    go run ./bench compare --base victoriametrics bench-results/*.jsonl`
}

// Run writes both systems as Go benchmarks and calls benchstat.
func (c *compareCmd) Run(ctx context.Context, out *streams) (err error) {
	records, err := result.Load(c.Results...)
	if err != nil {
		return err
	}
	dir := c.Out
	if dir == "" {
		if dir, err = os.MkdirTemp("", "shale-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	var files []string
	for _, name := range []string{c.Base, c.Head} {
		var text bytes.Buffer
		if err := result.WriteGo(&text, records, name, inTables); err != nil {
			return err
		}
		if text.Len() == 0 {
			return fmt.Errorf("the results have no run of %s", name)
		}
		file := filepath.Join(dir, name+".txt")
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			return err
		}
		files = append(files, name+"="+file) // benchstat shows the name
	}
	return stat(ctx, out, files...)
}

// inTables reports whether the table of a load has the figure.
func inTables(name, figure string) bool {
	for _, l := range loads() {
		if l.name == name {
			return slices.Contains(l.columns, figure)
		}
	}
	return slices.Contains([]string{"first-s", "p50-s", "cpu-s"}, figure) // of a query
}

// frontsCmd is bench fronts.
type frontsCmd struct {
	Front   []string        `placeholder:"NAME=URL" help:"A server of Loki's API that runs; may be repeated. Others are compared with the first."`
	All     string          `default:"{cluster=\"load-1\"}" help:"Selector of all lines."`
	Some    string          `default:"{cluster=\"load-1\",app=\"checkout\"}" help:"Selector of some of the lines."`
	End     time.Time       `help:"When the newest line was sent, in RFC 3339."`
	Span    []time.Duration `default:"1h,24h,168h" help:"Ranges of single requests; many clients ask for the first."`
	Asks    int             `default:"20" help:"How often each request is sent cold, and how often warm."`
	Clients []int           `default:"10,50,100,200" help:"Clients at one time."`
	Phase   time.Duration   `default:"5s" help:"How long each number of clients sends, cold and warm."`

	Program   []string      `sep:"none" placeholder:"NAME=COMMAND" help:"A server of Loki's API to start, with {listen}, {backend}, {dir} and {fleet} in place of its address, the URL of --backend, its folder and the addresses of a fleet. Counts what pages make it ask for."`
	Backend   string        `placeholder:"URL" help:"The VictoriaLogs of programs."`
	Apps      []string      `default:"checkout,payments,search,gateway,orders,billing" help:"Values of the label app that pages show."`
	Every     time.Duration `default:"10s" help:"Time between two refreshes of pages."`
	Refreshes int           `default:"6" help:"Refreshes of pages after the first one."`
	Fleet     int           `default:"3" help:"Programs that share the work in the last part."`
}

// Help returns an example.
func (*frontsCmd) Help() string {
	return `Print tables of servers that speak Loki's API over one VictoriaLogs: each request cold and warm, many
clients at one time, and whether the responses are alike:

    shale load logs --mb 1000 --span 168h --url http://127.0.0.1:9428/insert/loki/api/v1/push
    go run ./bench fronts --front shale=http://127.0.0.1:9480 --front other=http://127.0.0.1:3100 \
      --end 2026-11-28T12:00:00Z

With --program, it starts the servers, and counts what they ask VictoriaLogs for when pages are refreshed:

    go run ./bench fronts --backend http://127.0.0.1:9428 \
      --program 'shale=shale serve --http-listen {listen} --source victorialogs={backend} --data-dir {dir}'`
}

// Run prints the tables.
func (c *frontsCmd) Run(ctx context.Context, out *streams) error {
	switch {
	case len(c.Program) > 0:
		return c.pages(ctx, out)
	case len(c.Front) == 0 || c.End.IsZero():
		return errors.New("either --front and --end are needed, or --program and --backend")
	}
	o := fronts.Options{All: c.All, Some: c.Some, End: c.End, Spans: c.Span, Asks: c.Asks, Clients: c.Clients, Phase: c.Phase, Log: out.stderr}
	for _, text := range c.Front {
		f, err := fronts.ParseFront(text)
		if err != nil {
			return err
		}
		o.Fronts = append(o.Fronts, f)
	}
	return fronts.Run(ctx, o, out.stdout)
}

// pages counts what pages make programs ask for.
func (c *frontsCmd) pages(ctx context.Context, out *streams) (err error) {
	dir, err := os.MkdirTemp("", "fronts-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o := fronts.PageOptions{
		Backend: c.Backend, All: strings.TrimSuffix(c.All, "}"), Apps: c.Apps, Span: 24 * time.Hour, Every: c.Every, Refreshes: c.Refreshes, Fleet: c.Fleet,
		Dir: dir, Now: time.Now, Log: out.stderr,
	}
	for _, text := range c.Program {
		p, err := fronts.ParseProgram(text)
		if err != nil {
			return err
		}
		o.Programs = append(o.Programs, p)
	}
	return fronts.RunPages(ctx, o, out.stdout)
}

// rendersCmd is bench renders.
type rendersCmd struct {
	Lines   []string  `placeholder:"ADDRESS" help:"Only send the points to this address, as lines of Graphite; may be repeated."`
	Whisper string    `placeholder:"DIR" help:"Only write the points to this folder, as whisper files."`
	Server  []string  `sep:"none" placeholder:"NAME=URL,PID..." help:"A server that holds the points, and its processes; may be repeated. Others are compared with the first."`
	End     time.Time `required:"" help:"Time of the newest points, in RFC 3339."`
	Rounds  int       `default:"5" help:"How often each server draws everything."`
	Browser int       `default:"6" help:"Requests at one time."`

	Every time.Duration `placeholder:"DURATION" help:"Only let the first server draw everything this often, for --last, and print the times of panels."`
	Last  time.Duration `default:"10m" help:"How long --every goes on."`
}

// Help returns an example.
func (*rendersCmd) Help() string {
	return `Print a table of what it takes servers of Graphite's render API to draw a dashboard of 100 panels, a sum of
10,000 series and a year of one series. First send the points, 62 million, and write 2.5 GB of files:

    go run ./bench renders --end 2026-11-28T12:00:00Z --lines 127.0.0.1:2003 --whisper /opt/graphite/storage/whisper

Then measure; servers may have up to --rounds minutes less than all points:

    go run ./bench renders --end 2026-11-28T12:00:00Z --server graphite=http://127.0.0.1:8080,4711 \
      --server shale=http://127.0.0.1:9480,4712`
}

// Run sends points, or prints the table.
func (c *rendersCmd) Run(ctx context.Context, out *streams) error {
	end := c.End.Truncate(time.Minute)
	if c.Whisper != "" {
		if err := renders.Whisper(c.Whisper, end); err != nil {
			return err
		}
	}
	for _, address := range c.Lines {
		n, err := renders.Lines(ctx, address, end, out.stderr)
		if err != nil {
			return err
		}
		fmt.Fprintf(out.stdout, "%d points sent to %s\n", n, address)
	}
	if c.Whisper != "" || len(c.Lines) > 0 {
		return nil
	}
	o := renders.Options{End: end, Rounds: c.Rounds, Browser: c.Browser, Log: out.stderr}
	for _, text := range c.Server {
		s, err := renders.ParseServer(text)
		if err != nil {
			return err
		}
		o.Servers = append(o.Servers, s)
	}
	if len(o.Servers) == 0 || c.Rounds < 1 || c.Browser < 1 {
		return errors.New("--server must be given, and --rounds and --browser must be above 0")
	}
	if c.Every > 0 {
		return renders.Refresh(ctx, o, c.Every, c.Last, out.stdout)
	}
	return renders.Run(ctx, o, out.stdout)
}
