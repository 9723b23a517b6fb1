package load

import (
	"fmt"
	"strings"
)

// writeLines tells of a load of lines.
func (r *Report) writeLines(p func(format string, args ...any)) {
	p("%s: %d streams, %d lines, %.1f MB in %.1f s: %.1f MB/s", r.Kind, r.Series, r.Sent, float64(r.LineBytes)/1e6, r.Seconds, r.LineRate/1e6)
	p("  acknowledged %d, dropped %d, lost %d", r.Acked, r.Dropped, r.Lost)
	p("  requests %d, retries %d, connection errors %d%s", r.Requests, r.Retries, r.Faults, r.codes())
	p("  latency p50 %s, p90 %s, p99 %s, max %s", ms(r.Latency.P50), ms(r.Latency.P90), ms(r.Latency.P99), ms(r.Latency.Max))
	p("  on the wire %.1f MB, %.1f before compression", float64(r.Bytes)/1e6, float64(r.RawBytes)/1e6)
	p("  own CPU %.2f s, %.2f s for a GB of lines", r.CPUSeconds, r.CPUPerGB)
	for _, n := range r.Needles {
		apps := ""
		if len(n.Apps) > 0 {
			apps = " of " + strings.Join(n.Apps, ", ")
		}
		p("  to search for: %s, in %d lines%s", n.Text, n.Lines, apps)
	}
	if r.LastError != "" {
		p("  last error: %s", r.LastError)
	}
}

func (v *LogVerification) write(sb *strings.Builder) {
	verdict := "OK"
	if !v.OK() {
		verdict = "FAILED"
	}
	fmt.Fprintf(sb, "verification %s: %d queries in %.1f s\n", verdict, v.Queries, v.Seconds)
	if v.Unproven {
		sb.WriteString("  nothing was acknowledged, so there is nothing to verify\n")
	}
	fmt.Fprintf(sb, "  %d streams: %d lines (%.1f MB) equal byte for byte, %d missing, %d doubled, %d wrong, %d misplaced, %d extra, %d present without an acknowledgement\n",
		v.Streams, v.Equal, float64(v.Bytes)/1e6, v.Missing, v.Doubled, v.Wrong, v.Moved, v.Extra, v.Unacked)
	if v.Replaced > 0 {
		fmt.Fprintf(sb, "  of them %d are no UTF-8, which JSON cannot say: equal in all that is\n", v.Replaced)
	}
	if v.Failed > 0 {
		fmt.Fprintf(sb, "  %d queries failed\n", v.Failed)
	}
	for _, e := range v.Examples {
		fmt.Fprintf(sb, "  - %s\n", e)
	}
}
