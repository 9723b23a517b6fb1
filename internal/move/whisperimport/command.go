package whisperimport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/progress"
	"github.com/shaledb/shale/internal/terminal"
)

// Command is the command line of an import. Kong fills it.
type Command struct {
	Dir         string        `arg:"" type:"existingdir" help:"Folder of whisper files: STORAGE_DIR/whisper of a carbon. Names of series are relative to it."`
	Address     string        `default:"http://127.0.0.1:9480" placeholder:"URL" help:"Server to import to."`
	Tenant      string        `placeholder:"NAME" help:"Tenant to import as (X-Scope-OrgID). Default: the server's default."`
	Dialect     string        `default:"python" enum:"python,go" help:"Program that wrote the files: python (carbon) or go (go-carbon). The two number their aggregation methods differently. Compressed files are always from go-carbon."`
	TaggedNames string        `type:"existingfile" placeholder:"FILE" help:"File with the names of tagged series, one per line. Needed for files that are named by a hash."`
	AsOf        string        `placeholder:"TIME" help:"Read the files as whisper would at this time, for those of a backup. Default: now, or the time of the first run."`
	Verify      bool          `help:"Read every point back over remote read, and compare it bit for bit."`
	State       string        `default:"shale-import.state" type:"path" placeholder:"FILE" help:"File that records what is acknowledged. With it the next run goes on where this one stopped."`
	Concurrency int           `default:"4" placeholder:"N" help:"Files that are read, and requests that are sent, at one time."`
	Patience    time.Duration `default:"10m" placeholder:"TIME" help:"How long to wait for a server that is away, is overloaded or refuses for now."`
	DryRun      bool          `help:"Read all files, list their layouts and what would be skipped, and send nothing."`
	JSON        bool          `name:"json" help:"Print the report as JSON."`
	Quiet       bool          `help:"Show no progress."`
}

// Help teaches the command by examples.
func (*Command) Help() string {
	return `Points arrive bit for bit. The server must accept points of that age; start it with --max-age 0 and a --retention that reaches back far
enough.

Look at the files of a carbon, import them and read them back:

    shale import whisper /opt/graphite/storage/whisper --dry-run
    shale import whisper /opt/graphite/storage/whisper --verify

Files of go-carbon, and a backup that was made at noon:

    shale import whisper /var/lib/graphite/whisper --dialect go
    shale import whisper /backup/whisper --as-of 2026-11-20T12:00:00Z

An import that was stopped or killed goes on where it was when it is run again. docs/moving-in.md says more.`
}

// ErrDiffers says that the verification failed. The report shows the differences.
var ErrDiffers = errors.New("verification failed")

// Surroundings are what a command works with.
type Surroundings struct {
	Server *client.Server
	// Now is the time of AsOf in Unix seconds; 0: none was given.
	Now      int64
	Out      io.Writer
	Progress progress.Progress
}

// Run imports the files.
func (c *Command) Run(ctx context.Context, s Surroundings) error {
	job, err := c.job(&s)
	if err != nil {
		return err
	}
	total, err := Count(ctx, c.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Dir, err)
	}
	if total == 0 {
		return fmt.Errorf("%s has no files that end in %s", c.Dir, suffix)
	}
	if c.Quiet {
		s.Progress = progress.Progress{}
	}
	if c.DryRun {
		return c.dryRun(ctx, &s, job, total)
	}
	var report *Report
	if c.Verify {
		total *= 2
	}
	s.Progress.During(job.meter("import", total), func() { report, err = job.Run(ctx) })
	if perr := c.print(s.Out, report, func() string { return report.text() }); perr != nil {
		return perr
	}
	switch {
	case err != nil:
		return err
	case report.Verification != nil && report.Verification.Failed():
		return ErrDiffers
	case report.Files == 0:
		return fmt.Errorf("%s: no file was imported", c.Dir)
	}
	return nil
}

// job makes the import that the command line describes.
func (c *Command) job(s *Surroundings) (*Import, error) {
	names, err := ReadNames(c.TaggedNames)
	if err != nil {
		return nil, fmt.Errorf("--tagged-names: %w", err)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	header := Header{Source: dir, Address: c.Address, Tenant: c.Tenant, Dialect: Dialect(c.Dialect)}
	state := NewState(header, s.Now)
	if !c.DryRun {
		if state, err = OpenState(c.State, header, s.Now); err != nil {
			return nil, err
		}
	}
	return &Import{Dir: dir, Names: names, Server: s.Server, State: state, Concurrency: c.Concurrency, Patience: c.Patience, Verify: c.Verify}, nil
}

// meter shows files and points.
func (i *Import) meter(name string, total int64) progress.Meter {
	begun := time.Now()
	read := func() int64 { n, _ := i.Done(); return n }
	return progress.Meter{Name: name, Total: total, Read: read, Detail: func() string {
		n, earlier := i.Done()
		rate := float64(n-earlier) / time.Since(begun).Seconds()
		return fmt.Sprintf("%s of %s files, %s files/s, %s points", humanize.Comma(n), humanize.Comma(total), humanize.Comma(int64(rate)), humanize.Comma(i.Points()))
	}}
}

func (c *Command) dryRun(ctx context.Context, s *Surroundings, job *Import, total int64) error {
	var all Tally
	var schemas []Schema
	var err error
	s.Progress.During(job.meter("read", total), func() { all, schemas, err = job.DryRun(ctx) })
	if err != nil {
		return err
	}
	document := struct {
		Tally
		Schemas []Schema `json:"schemas"`
	}{all, schemas}
	return c.print(s.Out, document, func() string { return dryText(&all, schemas, total) })
}

// print prints a report for people or for programs.
func (c *Command) print(w io.Writer, document any, text func() string) (err error) {
	if c.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(document)
	}
	_, err = io.WriteString(w, terminal.EscapeLines(text())) // names of files are anybody's
	return err
}
