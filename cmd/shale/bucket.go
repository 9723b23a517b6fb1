package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/location"
	"github.com/shaledb/shale/internal/bucket/provider"
	"github.com/shaledb/shale/internal/load/progress"
	"github.com/shaledb/shale/internal/move/bucketcopy"
	"github.com/shaledb/shale/internal/terminal"
)

// bucketCmd works on buckets as a whole.
type bucketCmd struct {
	Copy bucketCopyCmd `cmd:"" help:"Copy a bucket to another store, or bring a copy up to date."`
}

type bucketCopyCmd struct {
	From        string `arg:"" help:"Bucket to copy: a folder, or a URL such as s3://NAME/PREFIX?region=REGION."`
	To          string `arg:"" help:"Bucket to copy to: an empty one, or an earlier copy."`
	Concurrency int    `default:"4" placeholder:"N" help:"Blocks to copy at one time. Each takes about 24 MiB of memory."`
	DryRun      bool   `help:"Say what would be copied, with bytes, requests and seconds, and write nothing."`
	JSON        bool   `name:"json" help:"Print the report as JSON."`
	Quiet       bool   `help:"Show no progress."`
}

// Help teaches the command by examples.
func (*bucketCopyCmd) Help() string {
	return `Servers may use the source meanwhile. The copy shows the source as it was at one moment, which the report names. Every block is read back
from the target and verified by the checksums of its pages.

Look at what a copy costs, and make it:

    shale bucket copy ./shale-data/bucket /backup/bucket --dry-run
    shale bucket copy ./shale-data/bucket /backup/bucket

Move the bucket of a folder to S3:

    shale bucket copy ./shale-data/bucket 's3://NAME/PREFIX?region=REGION'

Run it again to go on after an interruption, and later to bring the copy up to date: only new blocks are copied. A target that a
server has written to is refused. Two copies into one target must not run at the same time.

A server refuses a new target until the copy is complete. docs/moving-in.md says more.`
}

// openBucket opens the bucket that a command line names. Opening changes nothing before the first write.
func openBucket(name string) (bucket.Bucket, error) {
	l, err := location.Parse(name)
	if err != nil {
		return nil, usageError{fmt.Errorf("bucket: %w", err)}
	}
	b, _, err := provider.Open(vfs.Default, l)
	return b, err
}

// Run copies the bucket.
func (c *bucketCopyCmd) Run(ctx context.Context, p *process) error {
	if c.Concurrency < 1 {
		return usageError{fmt.Errorf("--concurrency: expected at least 1, got %d", c.Concurrency)}
	}
	from, err := openBucket(c.From)
	if err != nil {
		return err
	}
	if info, err := os.Stat(c.From); err == nil && info.IsDir() && sameFolder(c.From, c.To) {
		return usageError{errors.New("source and target are the same folder")}
	}
	to, err := openBucket(c.To)
	if err != nil {
		return err
	}
	job := bucketcopy.Copy{From: from, To: to, Concurrency: c.Concurrency}
	plan, err := job.Plan(ctx)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.print(p, plan, planText(plan))
	}
	var report *bucketcopy.Report
	show := p.progress()
	if c.Quiet {
		show = progress.Progress{}
	}
	show.During(byteMeter("copy", plan.Total(), job.Moved), func() { report, err = job.Run(ctx) })
	if err != nil {
		return fmt.Errorf("%w; run the command again to go on", err)
	}
	return c.print(p, report, reportText(report))
}

// sameFolder reports whether two paths lead to one folder.
func sameFolder(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func (c *bucketCopyCmd) print(p *process, all any, rows [][]string) error {
	if c.JSON {
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		return e.Encode(all)
	}
	return terminal.Table(p.stdout, rows)
}

func planText(p *bucketcopy.Plan) [][]string {
	r := p.Requests
	rows := [][]string{
		{"blocks to copy", fmt.Sprintf("%d, %s", p.Blocks, humanBytes(p.Bytes))},
		{"blocks in the target already", fmt.Sprint(p.Present)},
		{"bytes to read back and verify", humanBytes(p.BytesToVerify)},
		{"commit records to write", fmt.Sprint(p.Records)},
		{"commit records to remove", fmt.Sprint(p.Removed)},
		{"requests to the source", fmt.Sprintf("%d GET", r.SourceGet)},
		{"requests to the target", fmt.Sprintf("%d PUT, %d GET, %d DELETE", r.TargetPut, r.TargetGet, r.TargetDelete)},
	}
	if p.Rate > 0 {
		took := time.Duration(p.Seconds * float64(time.Second)).Round(time.Second)
		rows = append(rows, []string{"time, if the target is as fast as the source", fmt.Sprintf("%s at %s/s", took, humanBytes(int64(p.Rate)))})
	}
	return rows
}

func reportText(r *bucketcopy.Report) [][]string {
	return [][]string{
		{"the copy shows the source as it was at", r.Moment.UTC().Format("2006-01-02T15:04:05.000Z")},
		{"blocks copied", fmt.Sprintf("%d, %s", r.Blocks, humanBytes(r.Bytes))},
		{"blocks in the target already", fmt.Sprint(r.Present)},
		{"bytes read back and verified", humanBytes(r.Verified)},
		{"commit records written", fmt.Sprint(r.Records)},
		{"objects removed that the source has collected", fmt.Sprint(r.Removed)},
		{"seconds", fmt.Sprintf("%.1f", r.Seconds)},
	}
}

func humanBytes(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

// byteMeter shows bytes, their rate and the time that is left.
func byteMeter(name string, total int64, read func() int64) progress.Meter {
	begun := time.Now()
	return progress.Meter{Name: name, Total: total, Read: read, Detail: func() string {
		n := read()
		return fmt.Sprintf("%s of %s%s", humanBytes(n), humanBytes(total), remaining(n, total, time.Since(begun), func(rate float64) string { return humanBytes(int64(rate)) + "/s" }))
	}}
}

// remaining describes a rate and the time that is left at this rate.
func remaining(n, total int64, took time.Duration, rate func(perSecond float64) string) string {
	perSecond := float64(n) / max(took.Seconds(), 0.001)
	if n <= 0 {
		return ""
	}
	text := ", " + rate(perSecond)
	if left := time.Duration(float64(total-n) / perSecond * float64(time.Second)); left > 0 {
		text += ", " + left.Round(time.Second).String() + " left"
	}
	return text
}
