package send

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/internal/load/tally"
	"github.com/shaledb/shale/internal/load/wire"
)

// RemoteWriteTally counts what a load of remote write does while it runs.
type RemoteWriteTally struct {
	tally.Tally
	// Counts of what was sent.
	histograms, exemplars, stale, late, twice atomic.Int64
	// misreported counts requests with a 2xx whose headers report other counts.
	misreported atomic.Int64
}

// count adds the contents of a request.
func (t *RemoteWriteTally) count(c *wire.Contents) {
	t.Sent.Add(int64(c.Points()))
	t.histograms.Add(int64(c.Histograms))
	t.exemplars.Add(int64(c.Exemplars))
	t.stale.Add(int64(c.Stale))
	t.late.Add(int64(c.Late))
	t.twice.Add(int64(c.Twice))
}

// RemoteWriteReport is the outcome of a load of remote write.
type RemoteWriteReport struct {
	tally.Delivery
	// Of the samples sent: native histograms, stale markers, samples that came after newer ones, and samples
	// that had been sent before. Exemplars are not counted in Sent.
	Histograms   int64 `json:"histograms,omitempty"`
	Exemplars    int64 `json:"exemplars,omitempty"`
	StaleMarkers int64 `json:"stale_markers,omitempty"`
	Late         int64 `json:"late,omitempty"`
	Twice        int64 `json:"twice,omitempty"`
	// Misreported counts requests with a 2xx although the headers of remote write 2.0 report other counts than
	// the request has. If the headers say that nothing was written, the request counts as dropped.
	Misreported int64 `json:"misreported,omitempty"`
	tally.Traffic
	LastError string `json:"last_error,omitempty"`
}

func (t *RemoteWriteTally) report(series int64, took, cpu time.Duration) *RemoteWriteReport {
	return &RemoteWriteReport{
		Delivery: t.Deliver("remote-write", series, took), Traffic: t.Traffic(t.Acked.Load(), took, cpu),
		Histograms: t.histograms.Load(), Exemplars: t.exemplars.Load(), StaleMarkers: t.stale.Load(),
		Late: t.late.Load(), Twice: t.twice.Load(), Misreported: t.misreported.Load(), LastError: t.Complaint(),
	}
}

// WriteText writes the report for people.
func (r *RemoteWriteReport) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%s: %d series, %d samples in %.1f s: %.0f/s\n", r.Kind, r.Series, r.Sent, r.Seconds, r.Rate)
	r.WriteFate(w)
	if r.Histograms+r.Exemplars+r.StaleMarkers > 0 {
		fmt.Fprintf(w, "  of these, %d histograms and %d stale markers; also %d exemplars\n", r.Histograms, r.StaleMarkers, r.Exemplars)
	}
	if r.Late+r.Twice > 0 {
		fmt.Fprintf(w, "  of these, %d out of order and %d repeated\n", r.Late, r.Twice)
	}
	if r.Misreported > 0 {
		fmt.Fprintf(w, "  %d responses with other counts than were sent\n", r.Misreported)
	}
	fmt.Fprintf(w, "  lag %.2f s at the end, %.2f s at most\n", r.LagSeconds, r.MaxLag)
	r.WriteRequests(w)
	r.WriteCost(w)
	writeLastError(w, r.LastError)
}

func writeLastError(w io.Writer, text string) {
	if text != "" {
		fmt.Fprintf(w, "  last error: %s\n", text)
	}
}

// GraphiteReport is the outcome of a Graphite load.
type GraphiteReport struct {
	tally.Delivery
	tally.Traffic
	LastError string    `json:"last_error,omitempty"`
	Received  *Received `json:"received,omitempty"`
}

// Received is the result of reading the server's own counter.
type Received struct {
	Points uint64 `json:"points"` // that the server must have kept
	Died   bool   `json:"server_died"`
}

// WriteText writes the report for people.
func (r *GraphiteReport) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%s: %d series, %d samples in %.1f s: %.0f/s\n", r.Kind, r.Series, r.Sent, r.Seconds, r.Rate)
	fmt.Fprintf(w, "  lost %d in broken connections\n", r.Lost)
	fmt.Fprintf(w, "  lag %.2f s at the end, %.2f s at most\n", r.LagSeconds, r.MaxLag)
	r.WriteRequests(w)
	r.WriteCost(w)
	if r.Received != nil {
		when := map[bool]string{true: ", one second before it died"}[r.Received.Died]
		fmt.Fprintf(w, "  the server counted %d points received%s\n", r.Received.Points, when)
	}
	writeLastError(w, r.LastError)
}

// LogsTally counts what a load of log lines does while it runs.
type LogsTally struct {
	tally.Tally
	Pushes    atomic.Int64 // that are over, with whatever outcome
	lineBytes atomic.Int64 // of acknowledged lines
}

// Detail returns a function that describes in a few words how a load of lines is doing.
func (t *LogsTally) Detail() func() string {
	began := time.Now()
	return func() string {
		mb := float64(t.lineBytes.Load()) / 1e6
		text := fmt.Sprintf("%d lines, %.0f MB acknowledged, %.1f MB/s, %d retries", t.Acked.Load(), mb, mb/max(1e-3, time.Since(began).Seconds()), t.Retries.Load())
		if c := t.Complaint(); c != "" && t.Acked.Load() == 0 {
			text += ": " + c
		}
		return text
	}
}

// LogsReport is the outcome of a load of log lines.
type LogsReport struct {
	tally.Delivery
	// LineBytes counts the bytes of acknowledged lines; LineRate is these bytes a second.
	LineBytes int64   `json:"line_bytes,omitempty"`
	LineRate  float64 `json:"line_bytes_per_second,omitempty"`
	tally.Traffic
	CPUPerGB  float64 `json:"cpu_seconds_per_gb,omitempty"` // of lines
	LastError string  `json:"last_error,omitempty"`
	// Needles can be searched for in the lines that were sent.
	Needles []lines.Needle `json:"needles,omitempty"`
}

func (t *LogsTally) report(streams int64, took, cpu time.Duration) *LogsReport {
	r := &LogsReport{
		Delivery: t.Deliver("logs", streams, took), Traffic: t.Traffic(t.Acked.Load(), took, cpu),
		LineBytes: t.lineBytes.Load(), LastError: t.Complaint(),
	}
	if r.Seconds > 0 {
		r.LineRate = float64(r.LineBytes) / r.Seconds
	}
	if r.LineBytes > 0 {
		r.CPUPerGB = r.CPUSeconds / float64(r.LineBytes) * 1e9
	}
	return r
}

// WriteText writes the report for people.
func (r *LogsReport) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%s: %d streams, %d lines, %.1f MB in %.1f s: %.1f MB/s\n",
		r.Kind, r.Series, r.Sent, float64(r.LineBytes)/1e6, r.Seconds, r.LineRate/1e6)
	r.WriteFate(w)
	r.WriteRequests(w)
	fmt.Fprintf(w, "  %.1f MB on the wire, %.1f MB before compression\n", float64(r.Bytes)/1e6, float64(r.RawBytes)/1e6)
	fmt.Fprintf(w, "  CPU of this process: %.2f s, %.2f s per GB of lines\n", r.CPUSeconds, r.CPUPerGB)
	for _, n := range r.Needles {
		n.WriteText(w)
	}
	writeLastError(w, r.LastError)
}
