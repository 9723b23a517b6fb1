package inventory

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/plot"
	"github.com/shaledb/shale/internal/terminal"
)

// printUnused shows what no query has asked for.
func printUnused(out io.Writer, u *client.Unused) error {
	if u.Full {
		_, err := fmt.Fprintln(out, "there were too many different queries to remember them all, so nothing is known to be unused")
		return err
	}
	name := func(s string) string { return string(terminal.Escape(nil, []byte(s))) }
	if len(u.ByMetric) > 0 {
		rows := [][]string{{"METRIC", "SERIES", "SAMPLES/DAY", "BYTES/DAY", "DOLLARS/MONTH"}}
		add := func(name string, s *client.Saving) {
			rows = append(rows, []string{name, text(s.Series), fmt.Sprintf("%.0f", s.SamplesPerDay), plot.Bytes(s.BytesPerDay), fmt.Sprintf("%.4f", s.DollarsPerMonth)})
		}
		for i := range u.ByMetric {
			add(name(u.ByMetric[i].Name), &u.ByMetric[i].Saving)
		}
		add("total", &u.Saved)
		if err := terminal.Table(out, rows); err != nil {
			return err
		}
	}
	if len(u.ByLabel) > 0 {
		rows := [][]string{{"LABEL", "VALUES", "SERIES", "BYTES", "DROP"}}
		for _, l := range u.ByLabel {
			drop := "would join series"
			if l.Droppable {
				drop = "yes"
			}
			rows = append(rows, []string{name(l.Name), text(l.Values), text(l.Series), text(l.ValueBytes), drop})
		}
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
		if err := terminal.Table(out, rows); err != nil {
			return err
		}
	}
	var last strings.Builder
	fmt.Fprintf(&last, "\nunused: %s, %s; queries known of %d of %d days, since %s\n",
		english.Plural(int(u.Metrics), "metric", ""), english.Plural(int(u.Labels), "label", ""), u.Days, unusedDays, u.Since)
	if u.Relabel != "" {
		last.WriteString("\nfor remote_write in prometheus.yml:\n\nwrite_relabel_configs:\n" + u.Relabel)
	}
	_, err := io.WriteString(out, last.String())
	return err
}

// unusedDays is how many days of queries are enough.
const unusedDays = 30
