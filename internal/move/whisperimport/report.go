package whisperimport

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/terminal"
)

// dryText is the report of a dry run for people.
func dryText(all *Tally, schemas []Schema, total int64) string {
	rows := [][]string{{"RETENTIONS", "FILES", "COMPRESSED", "EMPTY", "BYTES", "POINTS", "ROLLUPS"}}
	for i := range schemas {
		s := &schemas[i]
		rows = append(rows, []string{
			s.Retentions, humanize.Comma(s.Files), humanize.Comma(s.Compressed), humanize.Comma(s.Empty), humanize.IBytes(uint64(s.Bytes)), humanize.Comma(s.Points), humanize.Comma(s.Rollups),
		})
	}
	var text strings.Builder
	_ = terminal.Table(&text, rows) // a builder takes everything
	writeLeftOut(&text, all)
	fmt.Fprintf(&text, "%s of %s would be imported: %s and %s\n",
		humanize.Comma(all.Files), english.Plural(int(total), "file", ""), english.Plural(int(all.Points), "point", ""), english.Plural(int(all.Rollups), "rollup", ""))
	return text.String()
}

// listedSkipped bounds the skipped files that the report for people lists. That for programs has more.
const listedSkipped = 20

// writeLeftOut says what was left out.
func writeLeftOut(w io.Writer, t *Tally) {
	for _, n := range []struct {
		count      int64
		noun, what string
	}{
		{t.Empty, "file", "without a point that whisper would show"},
		{t.Future, "slot", "in the future"},
		{t.Stale, "slot", "too old for the archive, or overwritten"},
		{t.OtherMethods, "archive", "with a second method for the step of another one"},
		{t.Skipped, "file", "that cannot be read:"},
	} {
		if n.count > 0 {
			fmt.Fprintf(w, "left out          %s %s\n", english.Plural(int(n.count), n.noun, ""), n.what)
		}
	}
	for i, s := range t.SkippedList {
		if i == listedSkipped {
			fmt.Fprintf(w, "  and %s more; --json lists up to 1,000\n", humanize.Comma(t.Skipped-listedSkipped))
			break
		}
		fmt.Fprintf(w, "  %s: %s\n", s.Path, s.Why)
	}
}

// text is the report for people.
func (r *Report) text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "files imported    %s of %s", humanize.Comma(r.Files), humanize.IBytes(uint64(r.Bytes)))
	if r.Before > 0 {
		fmt.Fprintf(&text, "; %s more in an earlier run", humanize.Comma(r.Before))
	}
	fmt.Fprintf(&text, "\npoints            %s, and %s, in %.1f s; %s files/s and %s points/s while sending\n",
		humanize.Comma(r.Points), english.Plural(int(r.Rollups), "rollup", ""), r.Seconds, humanize.Comma(int64(r.FilesRate)), humanize.Comma(int64(r.PointsRate)))
	fmt.Fprintf(&text, "requests          %s of %s in all, %s\n", humanize.Comma(r.Requests), humanize.IBytes(uint64(r.Sent)), english.Plural(int(r.Retries), "retry", ""))
	writeLeftOut(&text, &r.Tally)
	if v := r.Verification; v != nil {
		fmt.Fprintf(&text, "verified          %s of %s series equal", english.Plural(int(v.Same), "point", ""), humanize.Comma(v.Series))
		for _, n := range []struct {
			count int64
			what  string
		}{{v.Missing, "missing"}, {v.Different, "different"}, {v.More, "more in the server"}} {
			if n.count > 0 {
				fmt.Fprintf(&text, ", %s %s", humanize.Comma(n.count), n.what)
			}
		}
		text.WriteByte('\n')
		for _, e := range v.Examples {
			fmt.Fprintf(&text, "  %s\n", e)
		}
	}
	return text.String()
}
