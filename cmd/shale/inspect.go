package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

type inspectCmd struct {
	Folder    inspectFolderCmd    `cmd:"" help:"List or check all files of a data folder."`
	Catalogue inspectCatalogueCmd `cmd:"" help:"List or check the live blocks of a bucket."`
	Bucket    inspectBucketCmd    `cmd:"" help:"Count the objects of a bucket, or check that its store can be used."`
	Retention inspectRetentionCmd `cmd:"" help:"Show what a bucket holds of the series of each retention rule."`
	Part      inspectPartCmd      `cmd:"" help:"Show a part of the local head."`
	Block     inspectPartCmd      `cmd:"" help:"Show a block of the bucket."`
	Journal   inspectJournalCmd   `cmd:"" help:"List or check the records of a journal."`
}

// Help teaches the command by examples.
func (*inspectCmd) Help() string {
	return `Without --repair these commands only read. Parts and blocks never change, so you can inspect them while a server runs. Stop the server
before you check a journal or a whole folder.

Check a data folder:

    shale inspect folder ./shale-data --check

Check a bucket, also while a server runs, and repair it:

    shale inspect catalogue ./shale-data/bucket --check
    shale inspect catalogue ./shale-data/bucket --repair

Find out whether an object store can be used:

    shale inspect bucket 's3://shale-data/eu?region=eu-central-1' --check

Show what each retention rule keeps, and which rule counts for a stream:

    shale inspect retention ./shale-data/bucket --config shale.yaml
    shale inspect retention --config shale.yaml --tenant team-a --signal logs --series '{app="web", env="dev"}'

Set damaged local files aside, so that the server starts and says what is missing:

    shale inspect folder ./shale-data --repair

Show what a block holds, or what each of its bytes means:

    shale inspect block ./shale-data/bucket/blocks/NAME
    shale inspect block ./shale-data/bucket/blocks/NAME --dump | less`
}

type inspectPartCmd struct {
	File  string `arg:"" type:"existingfile" help:"File to show."`
	Check bool   `xor:"what" help:"Read and verify every page."`
	Dump  bool   `xor:"what" help:"Print every byte with its meaning."`
}

// Run shows the footer, and more if asked.
func (i *inspectPartCmd) Run(ctx context.Context, p *process) error {
	return withPart(ctx, i.File, func(r *part.Reader) error {
		switch {
		case i.Dump:
			return part.Dump(ctx, p.stdout, r)
		case i.Check:
			if err := part.Check(ctx, r); err != nil {
				return fmt.Errorf("%s: %w", i.File, err)
			}
			_, err := fmt.Fprintf(p.stdout, "%s: in order (%s)\n", i.File, contents(r.Meta()))
			return err
		default:
			return printMeta(p.stdout, r)
		}
	})
}

// withPart opens a part file during a call.
func withPart(ctx context.Context, name string, fn func(r *part.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	r, err := part.Open(ctx, f, st.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fn(r)
}

func printMeta(w io.Writer, r *part.Reader) error {
	m := r.Meta()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "size\t%s (%d bytes)\n", config.Size(r.Size()), r.Size())
	fmt.Fprintf(t, "signal\t%v\n", m.Signal)
	fmt.Fprintf(t, "key seed\t%016x\n", uint64(m.Seed))
	fmt.Fprintf(t, "created\t%s\n", stamp(m.Created))
	for _, s := range m.Sources {
		fmt.Fprintf(t, "batches\t%d to %d of %s, whose journal was begun %s\n", s.SeqLo, s.SeqHi, s.Node, stamp(int64(s.Epoch)))
	}
	fmt.Fprintf(t, "labels\t%v\n", m.Labels)
	fmt.Fprintf(t, "series\t%d\n", m.Series)
	if m.Signal == model.Logs {
		fmt.Fprintf(t, "lines\t%d\n", m.Text)
		fmt.Fprintf(t, "bytes of lines\t%s (%d bytes), without their metadata\n", config.Size(min(m.TextBytes, math.MaxInt64)), m.TextBytes)
	} else {
		fmt.Fprintf(t, "samples\t%d\n", m.Samples)
		fmt.Fprintf(t, "exemplars\t%d\n", m.Exemplars)
	}
	fmt.Fprintf(t, "times\t%s\n", times(m.Range))
	if w := m.Windows; w.Count > 0 {
		fmt.Fprintf(t, "windows\t%d of %s from %s\n", w.Count, time.Duration(w.Length), stamp(w.Start))
	}
	if m.Samples > 0 {
		fmt.Fprintf(t, "bytes a sample\t%.3f\n", float64(r.Size())/float64(m.Samples))
	}
	if m.TextBytes > 0 {
		fmt.Fprintf(t, "bytes a byte of lines\t%.3f\n", float64(r.Size())/float64(m.TextBytes))
	}
	fmt.Fprintf(t, "tenants\t%d\n", len(m.Tenants))
	for i := range m.Tenants {
		e := &m.Tenants[i]
		rows := fmt.Sprintf("%d %s, %d %s", e.Samples, english.PluralWord(int(e.Samples), "sample", ""),
			e.Exemplars, english.PluralWord(int(e.Exemplars), "exemplar", ""))
		if m.Signal == model.Logs {
			rows = fmt.Sprintf("%d %s of %d bytes", e.Text, english.PluralWord(int(e.Text), "line", ""), e.TextBytes)
		}
		fmt.Fprintf(t, "  %s\t%d series from rank %d, %s, %s\n", e.Name, e.Series, e.Rank0, rows, times(e.Range))
	}
	return t.Flush()
}

// contents counts the series of a part and its samples or lines.
func contents(m *part.Meta) string {
	if m.Signal == model.Logs {
		return fmt.Sprintf("%d series, %d %s of %d bytes", m.Series, m.Text, english.PluralWord(int(m.Text), "line", ""), m.TextBytes)
	}
	return fmt.Sprintf("%d series, %d %s", m.Series, m.Samples, english.PluralWord(int(m.Samples), "sample", ""))
}

func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000Z") }

func times(r model.TimeRange) string {
	if r.Min > r.Max {
		return "none"
	}
	return stamp(r.Min) + " to " + stamp(r.Max)
}
