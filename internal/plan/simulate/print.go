package simulate

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/dustin/go-humanize/english"

	"github.com/shaledb/shale/internal/plan/cluster"
	"github.com/shaledb/shale/internal/plan/study"
	"github.com/shaledb/shale/internal/plot"
	"github.com/shaledb/shale/internal/terminal"
)

func (c *Cache) print(w io.Writer, r *study.Report) error {
	switch {
	case c.JSON:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case c.CSV:
		return writeCSV(w, r)
	}
	if err := printTrace(w, r); err != nil {
		return err
	}
	if err := terminal.Table(w, cacheTable(r)); err != nil {
		return err
	}
	var rows [][]string
	if r.Target != nil {
		rows = append(rows, []string{"size that meets the target", targetText(r.Target)})
	}
	if r.Plan != nil {
		rows = append(rows, planRows(r.Plan, r.Loss)...)
	}
	for i, row := range rows {
		if i == 0 {
			row[0] = "\n" + row[0]
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", row[0], row[1]); err != nil {
			return err
		}
	}
	return nil
}

// printTrace describes the requests.
func printTrace(w io.Writer, r *study.Report) error {
	produced := ""
	if r.Events.Produced > 0 {
		produced = fmt.Sprintf(", %s produced a day", plot.Bytes(round3(r.Events.Produced*r.Scale)))
	}
	young := ""
	for _, y := range r.Young {
		young += fmt.Sprintf("; %.0f %% of the bytes are younger than %g h", 100*y.Share, y.Hours)
	}
	_, err := fmt.Fprintf(w, "%s: %d reads of %d keys in %.1f hours%s%s; 1 simulated request stands for %.4g\n\n",
		terminal.EscapeLines(r.Trace), r.Events.Reads, r.Events.Keys, r.Events.Hours, produced, young, r.Scale)
	return err
}

// round3 keeps 3 digits.
func round3(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// rate writes a number of requests with 3 digits.
func rate(v float64) string { return plot.Number(round3(v)) }

func percent(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

// cacheTable returns the table of all sizes and policies. Of the bound only hits and requests are known.
func cacheTable(r *study.Report) [][]string {
	rows := [][]string{{"policy", "size", "hit %", "first %", "byte %", "GET/s", "peak", "vs first", "unread %", "turns/h", "DWPD", "GET $/mo"}}
	base := r.Rows[0].Gets
	for _, row := range r.Rows {
		saved := ""
		if base > 0 {
			saved = fmt.Sprintf("%+.1f%%", 100*(row.Gets/base-1))
		}
		cells := []string{row.Policy, plot.Bytes(round3(row.Bytes)), percent(row.HitRatio)}
		if row.Policy == study.BoundName {
			cells = append(cells, "", "", rate(row.Gets), "", saved, "", "", "")
		} else {
			cells = append(cells, percent(row.FirstHitRatio), percent(row.ByteHitRatio), rate(row.Gets), rate(row.PeakGets), saved,
				percent(row.Unread), fmt.Sprintf("%.3g", row.Turnovers), fmt.Sprintf("%.2f", row.DriveWrites))
		}
		rows = append(rows, append(cells, fmt.Sprintf("%.0f", row.GetDollars)))
	}
	return rows
}

func targetText(m *study.Met) string {
	if !m.Reached {
		return fmt.Sprintf("none up to %s with %s: %s %% of first reads hit, %s GET/s in the worst minute",
			plot.Bytes(round3(m.Row.Bytes)), m.Policy, percent(m.Row.FirstHitRatio), rate(m.Row.PeakGets))
	}
	return fmt.Sprintf("%s with %s: %s %% of first reads hit, %s GET/s in the worst minute",
		plot.Bytes(round3(m.Row.Bytes)), m.Policy, percent(m.Row.FirstHitRatio), rate(m.Row.PeakGets))
}

func planRows(p *cluster.Plan, l *cluster.Loss) [][]string {
	n := p.Node
	return [][]string{
		{"cluster", fmt.Sprintf("%s %q of %s and %g Gbps, $%.0f a month", english.Plural(int(p.Nodes), "node", ""), n.Name, plot.Bytes(n.Bytes), n.Gbps, p.Dollars)},
		{"nodes that bytes, network and disk reads need", fmt.Sprintf("%d, %d, %d: %s decides", p.ByBytes, p.ByGbps, p.ByIOPS, p.Bound())},
		{"network in the worst minute", fmt.Sprintf("%.0f of %.0f Gbps", p.Need.Gbps, p.Gbps)},
		{"when a node is lost, with rendezvous hashing", fmt.Sprintf("%.1f %% of the values, %.2f times the requests", 100*l.Share, l.MoreGets)},
		{"when a node is lost, with a jump hash, in the mean", fmt.Sprintf("%.1f %% of the values, %.2f times the requests", 100*l.JumpShare, l.JumpMoreGets)},
		{"refill of a node", fmt.Sprintf("%s GET, $%.2f, at least %s", rate(l.RefillGets), l.RefillDollars, l.Refill)},
	}
}

func writeCSV(out io.Writer, r *study.Report) error {
	w := csv.NewWriter(out)
	head := []string{"policy", "bytes", "hit_ratio", "first_touch_hit_ratio", "byte_hit_ratio", "gets_per_second", "peak_gets_per_second",
		"unread_evictions_ratio", "peak_unread_evictions_per_hour", "refused_per_hour", "turnovers_per_hour", "peak_turnovers_per_hour",
		"written_bytes_per_day", "drive_writes_per_day", "peak_gbps", "peak_iops", "get_dollars_per_month"}
	if err := w.Write(head); err != nil {
		return err
	}
	for _, row := range r.Rows {
		cells := []string{row.Policy}
		for _, v := range []float64{row.Bytes, row.HitRatio, row.FirstHitRatio, row.ByteHitRatio, row.Gets, row.PeakGets, row.Unread, row.PeakUnread, row.Refused,
			row.Turnovers, row.PeakTurnovers, row.Written, row.DriveWrites, row.Gbps, row.IOPS, row.GetDollars} {
			cells = append(cells, strconv.FormatFloat(v, 'g', 6, 64))
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
