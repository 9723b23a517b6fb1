package verify

import (
	"fmt"
	"io"
)

// WriteText writes what was found for people.
func (v *Samples) WriteText(w io.Writer) {
	verdict := "OK"
	if !v.OK() {
		verdict = "FAILED"
	}
	fmt.Fprintf(w, "verification %s: %d queries in %.1f s\n", verdict, v.Queries, v.Seconds)
	if v.Unproven {
		fmt.Fprint(w, "  nothing was acknowledged, so there is nothing to verify\n")
	}
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
	if v.Failed > 0 {
		fmt.Fprintf(w, "  %d queries failed\n", v.Failed)
	}
	for _, e := range v.Examples {
		fmt.Fprintf(w, "  - %s\n", e)
	}
}

// WriteText writes what was found for people.
func (v *Lines) WriteText(w io.Writer) {
	verdict := "OK"
	if !v.OK() {
		verdict = "FAILED"
	}
	fmt.Fprintf(w, "verification %s: %d queries in %.1f s\n", verdict, v.Queries, v.Seconds)
	if v.Unproven {
		fmt.Fprint(w, "  nothing was acknowledged, so there is nothing to verify\n")
	}
	fmt.Fprintf(w, "  %d streams: %d lines (%.1f MB) equal byte for byte, %d missing, %d doubled, %d wrong, %d misplaced, %d extra, %d stored without an acknowledgement\n",
		v.Streams, v.Equal, float64(v.Bytes)/1e6, v.Missing, v.Doubled, v.Wrong, v.Moved, v.Extra, v.Unacked)
	if v.Replaced > 0 {
		fmt.Fprintf(w, "  %d of these are not valid UTF-8, which JSON cannot represent; all valid bytes are equal\n", v.Replaced)
	}
	if v.Failed > 0 {
		fmt.Fprintf(w, "  %d queries failed\n", v.Failed)
	}
	for _, e := range v.Examples {
		fmt.Fprintf(w, "  - %s\n", e)
	}
}
