package local

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/model"
)

// ErrTorn is the error of [Check] if the newest segment ends in bytes that hold no valid record. It is of
// class corrupt.
var ErrTorn = fmt.Errorf("%w: torn end", model.ErrCorrupt)

// Check reads a whole journal that is not being written. It returns an error of class corrupt that names file
// and offset if a record is damaged or missing, or [ErrTorn] if only the end of the newest segment is bad.
func Check(ctx context.Context, fs vfs.FS, dir string) error {
	var torn error
	err := visit(ctx, fs, dir, func(s *segment, t tail) {
		if t.torn != nil {
			torn = fmt.Errorf("journal %s: offset %d: %w: the last %d bytes hold no valid record after record %d: %w; "+
				"a crash leaves an end that holds nothing acknowledged, but if the disk has damaged these bytes, they may have been acknowledged",
				fs.PathJoin(dir, s.name), t.end, ErrTorn, s.size-t.end, s.last, t.torn)
		}
	}, func(*reader, *model.Batch) error { return nil })
	if err != nil {
		return err
	}
	return torn
}

// Dump writes one line for each segment and record of a journal.
func Dump(ctx context.Context, w io.Writer, fs vfs.FS, dir string) error {
	out := bufio.NewWriter(w)
	err := visit(ctx, fs, dir, func(s *segment, t tail) {
		fmt.Fprintf(out, "%s: seed %016x, records %d to %d, %d bytes\n", s.name, uint64(s.seed), s.first, s.last, s.size)
		if t.torn != nil {
			fmt.Fprintf(out, "  ends at offset %d, before %d bytes that hold no valid record: %v\n", t.end, s.size-t.end, t.torn)
		}
	}, func(r *reader, b *model.Batch) error {
		rows := describe(&b.Samples, "sample") + ", " + exemplars(b)
		if b.Signal == model.Logs {
			rows = describe(&b.Text, "line") + ", "
		}
		switch b.Control.Kind {
		case model.ControlDelete:
			rows += "a deletion, "
		case model.ControlCancel:
			rows += "the end of a deletion, "
		}
		_, err := fmt.Fprintf(out, "  %8d: record %d, %d bytes, %d before it unsynced: tenant %s, %s, %d series, %s%d %s\n",
			r.off-frameHeader-int64(r.frame.length), r.frame.seq, r.frame.length, r.frame.unsynced,
			b.Tenant, b.Signal, len(b.Keys), rows, b.Labels.Len(), english.PluralWord(b.Labels.Len(), "label set", ""))
		return err
	})
	if err != nil {
		fmt.Fprintf(out, "%v\n", err)
	}
	if e := out.Flush(); err == nil {
		err = e
	}
	return err
}

// describe summarises the rows of a family.
func describe(c *model.Columns, noun string) string {
	what := english.PluralWord(c.Len(), noun, "")
	if c.Len() == 0 {
		return "no " + what
	}
	histograms := 0
	for i := range c.Times {
		if c.Kind(i) == model.KindHistogram {
			histograms++
		}
	}
	if histograms > 0 {
		what += fmt.Sprintf(" (%d %s)", histograms, english.PluralWord(histograms, "histogram", ""))
	}
	return fmt.Sprintf("%d %s from %s to %s", c.Len(), what, rfc3339(slices.Min(c.Times)), rfc3339(slices.Max(c.Times)))
}

func exemplars(b *model.Batch) string {
	if b.Exemplars.Len() == 0 {
		return ""
	}
	return describe(&b.Exemplars, "exemplar") + ", "
}

func rfc3339(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }

func visit(ctx context.Context, fs vfs.FS, dir string, onSegment func(*segment, tail), onRecord func(*reader, *model.Batch) error) error {
	d := folder{fs: fs, path: dir} // nothing counts as covered
	segs, err := d.list()
	if err != nil {
		return err
	}
	var b model.Batch
	for i, s := range segs {
		var t tail
		if i == len(segs)-1 {
			if t, err = d.findEnd(s); err != nil {
				return err
			}
		}
		onSegment(s, t)
		if err := d.replaySegment(ctx, s, 0, &b, onRecord); err != nil {
			return err
		}
	}
	return nil
}
