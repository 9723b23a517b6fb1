package target

import (
	"fmt"
	"io"

	"github.com/shaledb/shale/internal/load/tally"
)

// Report is the outcome of serving targets.
type Report struct {
	tally.Delivery
	tally.Traffic
	LastError string `json:"last_error,omitempty"`
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%s: %d series, %d scrapes of %d samples in %.1f s: %.0f/s\n", r.Kind, r.Series, r.Requests, r.Sent, r.Seconds, r.Rate)
	fmt.Fprintf(w, "  %d scrapes cut short, %s\n", r.Faults, r.Latency)
	r.WriteCost(w)
	if r.LastError != "" {
		fmt.Fprintf(w, "  last error: %s\n", r.LastError)
	}
}
