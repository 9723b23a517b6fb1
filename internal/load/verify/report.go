package verify

import (
	"fmt"
	"io"
)

// WriteText writes the result for people.
func (v *Samples) WriteText(w io.Writer) {
	writeVerdict(w, v.OK(), v.Queries, v.Seconds, v.Unproven)
	if v.Markers+v.Exemplars+v.Metadata > 0 {
		fmt.Fprintf(w, "  also equal: %d stale markers, %d exemplars, metadata of %d metrics\n", v.Markers, v.Exemplars, v.Metadata)
	}
	if v.Series > 0 {
		fmt.Fprintf(w, "  %d series: %d samples equal bit for bit, %d missing, %d wrong, %d extra, %d stored without an acknowledgement\n",
			v.Series, v.Compared, v.Missing, v.Wrong, v.Extra, v.Unacked)
	}
	if v.CountedOf > 0 || v.Counted > 0 {
		fmt.Fprintf(w, "  counts: %d samples stored, at least %d expected; %d short, %d over\n", v.Counted, v.CountedOf, v.Short, v.Over)
	}
	writeFailures(w, v.Failed, v.Examples)
}

// WriteText writes the result for people.
func (v *Lines) WriteText(w io.Writer) {
	writeVerdict(w, v.OK(), v.Queries, v.Seconds, v.Unproven)
	fmt.Fprintf(w, "  %d streams: %d lines (%.1f MB) equal byte for byte, %d missing, %d doubled, %d wrong, %d misplaced, %d extra, %d stored without an acknowledgement\n",
		v.Streams, v.Equal, float64(v.Bytes)/1e6, v.Missing, v.Doubled, v.Wrong, v.Moved, v.Extra, v.Unacked)
	if v.Replaced > 0 {
		fmt.Fprintf(w, "  %d of these are not valid UTF-8, which JSON cannot represent; all valid bytes are equal\n", v.Replaced)
	}
	writeFailures(w, v.Failed, v.Examples)
}

func writeVerdict(w io.Writer, ok bool, queries int64, seconds float64, unproven bool) {
	verdict := "FAILED"
	if ok {
		verdict = "OK"
	}
	fmt.Fprintf(w, "verification %s: %d queries in %.1f s\n", verdict, queries, seconds)
	if unproven {
		fmt.Fprint(w, "  nothing was acknowledged, so there is nothing to verify\n")
	}
}

func writeFailures(w io.Writer, failed int64, examples []string) {
	if failed > 0 {
		fmt.Fprintf(w, "  %d queries failed\n", failed)
	}
	for _, e := range examples {
		fmt.Fprintf(w, "  - %s\n", e)
	}
}
