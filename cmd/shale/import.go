package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/load/progress"
	"github.com/shaledb/shale/internal/move/tsdbimport"
	"github.com/shaledb/shale/internal/move/whisperimport"
	"github.com/shaledb/shale/internal/terminal"
	"github.com/shaledb/shale/internal/terminal/moment"
)

// importCmd brings data of other stores.
type importCmd struct {
	TSDB    importTSDBCmd    `cmd:"" name:"tsdb" help:"Import blocks of Prometheus, Thanos or Mimir."`
	Whisper importWhisperCmd `cmd:"" name:"whisper" help:"Import whisper files of carbon or go-carbon."`
}

type importTSDBCmd struct {
	Source        string `arg:"" help:"Data folder of a Prometheus, one block, or the bucket of a Thanos or Mimir: a folder, or a URL such as s3://NAME/PREFIX?region=REGION."`
	Address       string `default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to import to."`
	Tenant        string `placeholder:"NAME" help:"Tenant to import as (X-Scope-OrgID). Default: for a bucket of Mimir the tenants of its folders, else the server's default."`
	client.Access `embed:""`
	Start         string          `placeholder:"TIME" help:"Leave out samples before this time."`
	End           string          `placeholder:"TIME" help:"Leave out samples from this time on."`
	DropLabel     []string        `placeholder:"NAME" help:"Do not add this external label of Thanos, such as that of replicas. May be repeated."`
	Verify        bool            `help:"Read every sample back over remote read, and compare it bit for bit."`
	State         string          `default:"shale-import.state" type:"path" placeholder:"FILE" help:"File that records what is acknowledged. With it the next run goes on where this one stopped."`
	WorkDir       string          `type:"existingdir" placeholder:"DIR" help:"Folder for the block that is downloaded from a URL. Default: the folder for temporary files."`
	Concurrency   int             `default:"4" placeholder:"N" help:"Requests at one time."`
	Patience      config.Duration `default:"10m" placeholder:"TIME" help:"How long to wait for a server that is away, is overloaded or refuses for now."`
	DryRun        bool            `help:"List the blocks and their samples, and send nothing."`
	JSON          bool            `name:"json" help:"Print the report as JSON."`
	Quiet         bool            `help:"Show no progress."`
}

type importWhisperCmd struct {
	client.Access         `embed:""`
	whisperimport.Command `embed:""`
}

// Run imports the files.
func (c *importWhisperCmd) Run(ctx context.Context, p *process) error {
	s := whisperimport.Surroundings{Out: p.stdout, Progress: p.progress()}
	var err error
	if s.Server, err = newServer(c.Address, c.Tenant, &c.Access); err != nil {
		return usageError{fmt.Errorf("--address: %q is not a URL such as http://127.0.0.1:9480", c.Address)}
	}
	if c.Concurrency < 1 {
		return usageError{fmt.Errorf("--concurrency: expected at least 1, got %d", c.Concurrency)}
	}
	if c.AsOf != "" {
		t, err := moment.Parse(c.AsOf, time.Now())
		if err != nil {
			return usageError{fmt.Errorf("--as-of: %w", err)}
		}
		s.Now = t.Unix()
	}
	transport := &http.Transport{MaxIdleConnsPerHost: c.Concurrency}
	defer transport.CloseIdleConnections()
	s.Server.HTTP, s.Server.Timeout = &http.Client{Transport: transport}, time.Minute
	err = c.Command.Run(ctx, s)
	if hint := tooOldHint(err); hint != "" {
		return fmt.Errorf("%w%s", err, hint)
	}
	return err
}

// Help teaches the command by examples.
func (*importTSDBCmd) Help() string {
	return `Samples arrive bit for bit: floats, stale markers, native histograms. What a tombstone hides is left out. The server must accept samples of
that age; start it with --max-age 0 and a --retention that reaches back far enough.

List the blocks of a Prometheus, import them and read them back:

    shale import tsdb /var/lib/prometheus/metrics2 --dry-run
    shale import tsdb /var/lib/prometheus/metrics2 --verify

Samples of the last hours are in no block yet. Ask the Prometheus for a snapshot (POST /api/v1/admin/tsdb/snapshot), and import that.

Import the bucket of a Thanos without the label of its replicas, as a tenant:

    shale import tsdb 's3://thanos?region=eu-central-1' --drop-label prometheus_replica --tenant team-a

Import all tenants of a Mimir under their names:

    shale import tsdb 'gs://mimir-blocks'

An import that was stopped or killed goes on where it was when it is run again. docs/moving-in.md says more.`
}

// errImportDiffers makes the process end with status 1; the report shows the differences.
var errImportDiffers = errors.New("verification failed")

// Run imports the blocks.
func (c *importTSDBCmd) Run(ctx context.Context, p *process) error {
	header, err := c.header()
	if err != nil {
		return usageError{err}
	}
	server, err := newServer(c.Address, c.Tenant, &c.Access)
	if err != nil {
		return usageError{fmt.Errorf("--address: %q is not a URL such as http://127.0.0.1:9480", c.Address)}
	}
	transport := &http.Transport{MaxIdleConnsPerHost: c.Concurrency}
	defer transport.CloseIdleConnections()
	server.HTTP, server.Timeout = &http.Client{Transport: transport}, time.Minute
	source, err := c.source()
	if err != nil {
		return err
	}
	blocks, err := tsdbimport.Blocks(ctx, source)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Source, err)
	}
	if err := c.checkTenants(blocks); err != nil {
		return usageError{err}
	}
	if folder, ok := source.(tsdbimport.Folder); ok && folder.HasJournal() {
		p.note("%s has a folder wal: its newest samples are in no block, so they are not imported", c.Source)
	}
	if c.DryRun {
		return c.printBlocks(p, blocks)
	}
	state, err := tsdbimport.OpenState(c.State, header)
	if err != nil {
		return err
	}
	job := &tsdbimport.Import{
		Source: source, Blocks: blocks, Server: server, State: state, DropLabels: c.DropLabel,
		Concurrency: c.Concurrency, Patience: c.Patience.Std(), Verify: c.Verify,
	}
	var report *tsdbimport.Report
	show := p.progress()
	if c.Quiet {
		show = progress.Progress{}
	}
	show.During(sampleMeter("import", job.Total(), job.Done), func() { report, err = job.Run(ctx) })
	if perr := c.printReport(p, report); perr != nil {
		return perr
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w%s; run the command again to go on", err, tooOldHint(err))
	case report.Verification != nil && report.Verification.Failed():
		return errImportDiffers
	case report.Imported == 0:
		return fmt.Errorf("%s: it has %s, and none was imported", c.Source, english.Plural(len(blocks), "block", ""))
	}
	return nil
}

// header describes the import in the state file.
func (c *importTSDBCmd) header() (h tsdbimport.Header, err error) {
	if c.Concurrency < 1 {
		return h, fmt.Errorf("--concurrency: expected at least 1, got %d", c.Concurrency)
	}
	slices.Sort(c.DropLabel)
	h = tsdbimport.Header{Source: c.Source, Address: c.Address, Tenant: c.Tenant, From: math.MinInt64, To: math.MaxInt64, Dropped: strings.Join(c.DropLabel, ",")}
	for _, bound := range []struct {
		flag, text string
		ms         *int64
	}{{"--start", c.Start, &h.From}, {"--end", c.End, &h.To}} {
		if bound.text == "" {
			continue
		}
		t, err := moment.Parse(bound.text, time.Now())
		if err != nil {
			return h, fmt.Errorf("%s: %w", bound.flag, err)
		}
		*bound.ms = t.UnixMilli()
	}
	if h.From >= h.To {
		return h, fmt.Errorf("--end: %s is not after --start %s", c.End, c.Start)
	}
	return h, nil
}

// source opens what the command line names.
func (c *importTSDBCmd) source() (tsdbimport.Source, error) {
	if !strings.Contains(c.Source, "://") {
		return tsdbimport.Folder(c.Source), nil
	}
	b, err := openBucket(c.Source)
	if err != nil {
		return nil, err
	}
	dir := c.WorkDir
	if dir == "" {
		dir = os.TempDir()
	}
	return &tsdbimport.Objects{Bucket: b, Dir: dir}, nil
}

// checkTenants refuses to mix the tenants of a Mimir.
func (c *importTSDBCmd) checkTenants(blocks []tsdbimport.Block) error {
	tenants := map[string]bool{}
	for i := range blocks {
		tenants[blocks[i].Tenant] = true
	}
	if c.Tenant != "" && len(tenants) > 1 {
		return fmt.Errorf("--tenant: %s has folders of %d tenants; name the folder of one of them, or leave --tenant out", c.Source, len(tenants))
	}
	return nil
}

// tooOldHint says what to do about samples that are too old for the server.
func tooOldHint(err error) string {
	var status *client.StatusError
	if errors.As(err, &status) && status.Status == http.StatusBadRequest && strings.Contains(err.Error(), "too_old") {
		return "; start the server with --max-age 0 and a longer --retention, or leave old samples out with --start"
	}
	return ""
}

func (c *importTSDBCmd) printBlocks(p *process, blocks []tsdbimport.Block) error {
	if c.JSON {
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		return e.Encode(blocks)
	}
	rows := [][]string{{"BLOCK", "FROM", "TO", "SERIES", "SAMPLES", "TENANT", "EXTERNAL LABELS", "LEFT OUT"}}
	var samples uint64
	imported := 0
	for i := range blocks {
		b := &blocks[i]
		if b.LeftOut == "" {
			samples += b.Samples
			imported++
		}
		rows = append(rows, []string{
			b.ID, minuteOf(b.MinTime), minuteOf(b.MaxTime), fmt.Sprint(b.Series), fmt.Sprint(b.Samples), string(terminal.Escape(nil, []byte(b.Tenant))), labelText(b.External), b.LeftOut,
		})
	}
	if err := terminal.Table(p.stdout, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "%d of %s would be imported: %s %s\n", imported, english.Plural(len(blocks), "block", ""),
		humanize.Comma(int64(samples)), english.PluralWord(int(samples), "sample", ""))
	return err
}

func minuteOf(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04Z") }

func labelText(labels map[string]string) string {
	var pairs []string
	for name, value := range labels {
		pairs = append(pairs, fmt.Sprintf("%s=%q", name, value))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

func (c *importTSDBCmd) printReport(p *process, r *tsdbimport.Report) error {
	if c.JSON {
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "blocks imported   %d", r.Imported)
	if r.Before > 0 {
		fmt.Fprintf(&text, ", %d of them in an earlier run", r.Before)
	}
	fmt.Fprintf(&text, "\nsamples           %s %s and %s %s in %.1f s, %s samples/s while sending\n",
		humanize.Comma(r.Floats), english.PluralWord(int(r.Floats), "float", ""),
		humanize.Comma(r.Histograms), english.PluralWord(int(r.Histograms), "histogram", ""), r.Seconds, humanize.Comma(int64(r.Rate)))
	fmt.Fprintf(&text, "requests          %s of %s in all, %s\n", humanize.Comma(r.Requests), humanBytes(r.Bytes), english.Plural(int(r.Retries), "retry", ""))
	for i := range r.LeftOut {
		fmt.Fprintf(&text, "left out          %s: %s\n", r.LeftOut[i].Folder, r.LeftOut[i].LeftOut)
	}
	if v := r.Verification; v != nil {
		fmt.Fprintf(&text, "verified          %s %s equal", humanize.Comma(v.Same), english.PluralWord(int(v.Same), "sample", ""))
		for _, n := range []struct {
			count int64
			what  string
		}{{v.Missing, "missing"}, {v.Different, "different"}, {v.Replaced, "stale, with a value in the server"}, {v.More, "more in the server"}} {
			if n.count > 0 {
				fmt.Fprintf(&text, ", %s %s", humanize.Comma(n.count), n.what)
			}
		}
		text.WriteByte('\n')
		for _, e := range v.Examples {
			fmt.Fprintf(&text, "  %s\n", e)
		}
	}
	_, err := io.WriteString(p.stdout, terminal.EscapeLines(text.String())) // labels of a block are anybody's
	return err
}

// sampleMeter shows samples, their rate and the time that is left. What an earlier run has done says nothing
// about the rate.
func sampleMeter(name string, total int64, done func() (now, earlier int64)) progress.Meter {
	begun := time.Now()
	read := func() int64 { n, _ := done(); return n }
	return progress.Meter{Name: name, Total: total, Read: read, Detail: func() string {
		n, earlier := done()
		return fmt.Sprintf("%s of %s samples%s", humanize.Comma(n), humanize.Comma(total),
			remaining(n-earlier, total-earlier, time.Since(begun), func(rate float64) string { return humanize.Comma(int64(rate)) + "/s" }))
	}}
}
