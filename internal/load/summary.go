package load

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteText writes the report for people. A report of a verification alone has no kind.
func (r *Report) WriteText(w io.Writer) error {
	var sb strings.Builder
	if r.Kind != "" {
		r.writeLoad(&sb)
	}
	if r.Verified != nil {
		r.Verified.write(&sb)
	}
	if r.Lines != nil {
		r.Lines.write(&sb)
	}
	_, err := io.WriteString(w, sb.String())
	return err
}

func (r *Report) writeLoad(sb *strings.Builder) {
	p := func(format string, args ...any) { fmt.Fprintf(sb, format+"\n", args...) }
	if r.Kind == kindLogs {
		r.writeLines(p)
		return
	}
	if r.Kind == kindTarget {
		p("%s: %d series, %d scrapes of %d samples in %.1f s: %.0f/s", r.Kind, r.Series, r.Requests, r.Sent, r.Seconds, r.Rate)
		p("  scrapes cut short %d, p50 %s, p99 %s, max %s", r.Faults, ms(r.Latency.P50), ms(r.Latency.P99), ms(r.Latency.Max))
	} else {
		r.writeSent(p)
	}
	p("  bytes %d, on the wire %d", r.RawBytes, r.Bytes)
	p("  own CPU %.2f s, %.3f s for a million samples", r.CPUSeconds, r.CPUPerMillion)
	if r.Received != nil {
		p("  the server said to have received %d points%s", r.Received.Points, map[bool]string{true: ", a second before it died"}[r.Received.Died])
	}
	if r.LastError != "" {
		p("  last error: %s", r.LastError)
	}
}

// writeSent tells of a load that was sent, and not fetched.
func (r *Report) writeSent(p func(format string, args ...any)) {
	p("%s: %d series, %d samples in %.1f s: %.0f/s", r.Kind, r.Series, r.Sent, r.Seconds, r.Rate)
	if r.Kind == kindGraphite {
		p("  lost %d in broken connections", r.Lost)
	} else {
		p("  acknowledged %d, dropped %d, lost %d", r.Acked, r.Dropped, r.Lost)
	}
	if r.Histograms+r.Exemplars+r.StaleMarkers > 0 {
		p("  of them histograms %d, stale markers %d; beside them exemplars %d", r.Histograms, r.StaleMarkers, r.Exemplars)
	}
	if r.Late+r.Twice > 0 {
		p("  of them out of order %d, sent before %d", r.Late, r.Twice)
	}
	if r.Misreported > 0 {
		p("  answers that count otherwise than was sent: %d", r.Misreported)
	}
	p("  lag %.2f s at the end, %.2f s at most", r.LagSeconds, r.MaxLag)
	p("  requests %d, retries %d, connection errors %d%s", r.Requests, r.Retries, r.Faults, r.codes())
	p("  latency p50 %s, p90 %s, p99 %s, max %s", ms(r.Latency.P50), ms(r.Latency.P90), ms(r.Latency.P99), ms(r.Latency.Max))
}

func (r *Report) codes() string {
	var sb strings.Builder
	for _, code := range slices.Sorted(maps.Keys(r.Codes)) {
		fmt.Fprintf(&sb, ", status %s: %d", code, r.Codes[code])
	}
	return sb.String()
}

func ms(seconds float64) string { return fmt.Sprintf("%.1f ms", seconds*1000) }

func (v *Verification) write(sb *strings.Builder) {
	verdict := "OK"
	if !v.OK() {
		verdict = "FAILED"
	}
	fmt.Fprintf(sb, "verification %s: %d queries in %.1f s\n", verdict, v.Queries, v.Seconds)
	if v.Unproven {
		sb.WriteString("  nothing was acknowledged, so there is nothing to verify\n")
	}
	if v.Markers+v.Exemplars+v.Metadata > 0 {
		fmt.Fprintf(sb, "  equal as well: %d stale markers, %d exemplars, what is told of %d metrics\n", v.Markers, v.Exemplars, v.Metadata)
	}
	if v.Series > 0 {
		fmt.Fprintf(sb, "  %d series: %d samples equal bit for bit, %d missing, %d wrong, %d extra, %d present without an acknowledgement\n",
			v.Series, v.Compared, v.Missing, v.Wrong, v.Extra, v.Unacked)
	}
	if v.CountedOf > 0 || v.Counted > 0 {
		fmt.Fprintf(sb, "  counts: %d samples stored of %d that must be; short by %d, over by %d\n", v.Counted, v.CountedOf, v.Short, v.Over)
	}
	if v.Failed > 0 {
		fmt.Fprintf(sb, "  %d queries failed\n", v.Failed)
	}
	for _, e := range v.Examples {
		fmt.Fprintf(sb, "  - %s\n", e)
	}
}
