package advise

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/terminal"
)

// doubtful is by how much the model may miss the hit ratio that the server has before the report warns of it.
const doubtful = 0.03

// Print writes a prediction for people.
func (w *Watched) Print(out io.Writer) error {
	if _, err := fmt.Fprintf(out, "%s was watched for %.0f s. In the second half it had %s gets, %.1f %% of them hits.\n\n",
		terminal.EscapeLines(w.Addr), w.Seconds, humanize.Comma(w.Gets), 100*w.Measured); err != nil {
		return err
	}
	rows := [][]string{{"memory", "times", "hit ratio", "difference"}}
	var notes []string
	for _, s := range w.Sizes {
		ratio := fmt.Sprintf("%.1f %%", 100*s.HitRatio)
		if s.AtMost > s.HitRatio+0.0005 {
			ratio = fmt.Sprintf("%.1f to %.1f %%", 100*s.HitRatio, 100*s.AtMost)
		}
		rows = append(rows, []string{mib(s.Memory), fmt.Sprintf("%g", s.Factor), ratio, fmt.Sprintf("%+.1f points", 100*(s.HitRatio-w.Measured))})
		if s.Factor == 1 && (s.HitRatio > w.Measured+doubtful || s.HitRatio < w.Measured-doubtful) {
			notes = append(notes, "The model does not find the hit ratio that the server has: do not rely on the other sizes. A longer watch may help")
		}
	}
	if err := terminal.Table(out, rows); err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\nThe simulation had %s, %.3g %% of all.\n", english.Plural(int(w.Keys), "key", ""), 100*w.Share)
	for _, note := range append(notes, w.unknown()...) {
		fmt.Fprintf(&text, "%s.\n", note)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// unknown says what a prediction does not know.
func (w *Watched) unknown() (notes []string) {
	if w.Skipped > 0 {
		notes = append(notes, fmt.Sprintf("The server left out %s of %s, which came faster than its log holds: the sample is of the others", humanize.Comma(w.Skipped), english.Plural(int(w.Skipped+w.Lines), "line", "")))
	}
	if w.Wrong > 0 {
		notes = append(notes, fmt.Sprintf("The log had %s of unknown form", english.Plural(int(w.Wrong), "line", "")))
	}
	for _, s := range w.Sizes {
		if s.AtMost > s.HitRatio+0.0005 {
			notes = append(notes, "The larger ratio of two counts requests for keys that were not seen before as hits: they may have been stored before the watch. A longer watch knows more")
			break
		}
	}
	if w.Moved > 0 {
		notes = append(notes, fmt.Sprintf("Meanwhile %s moved to another slab class. The model moves no pages", english.Plural(int(w.Moved), "page", "")))
	}
	if !w.Deletes {
		notes = append(notes, "This version does not log deletes: the model keeps what clients delete until they store it again")
	}
	if w.Disk {
		notes = append(notes, "The disk of extstore does not count: the model keeps whole values in memory")
	}
	return notes
}
