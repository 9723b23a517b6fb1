package tally

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Tally counts what a load does while it runs. Several goroutines may use it; the zero value is ready.
type Tally struct {
	// Sent counts each sample or line once, however often it is tried. Acked, Dropped and Lost count the
	// outcomes.
	Sent, Acked, Dropped, Lost atomic.Int64
	// Faults counts attempts that got no response.
	Requests, Retries, Faults atomic.Int64
	RawBytes, WireBytes       atomic.Int64

	codes       [600]atomic.Int64
	latency     Durations
	lag, maxLag atomic.Int64 // in ns
	complaint   atomic.Pointer[string]
}

// SetLag notes the delay of a part of the load.
func (t *Tally) SetLag(lag time.Duration) {
	t.lag.Store(int64(lag))
	storeMax(&t.maxLag, int64(lag))
}

// Complain keeps an error text. Only the last one is reported.
func (t *Tally) Complain(text string) { t.complaint.Store(&text) }

// Complaint returns the last error text, or an empty string.
func (t *Tally) Complaint() string {
	if text := t.complaint.Load(); text != nil {
		return *text
	}
	return ""
}

// Attempt counts a request and its bytes before and after compression.
func (t *Tally) Attempt(raw, wire int64) {
	t.Requests.Add(1)
	t.RawBytes.Add(raw)
	t.WireBytes.Add(wire)
}

// Fault counts an attempt that got no response.
func (t *Tally) Fault(why string) {
	t.Faults.Add(1)
	t.Complain(why)
}

// Respond counts a response and the time that it took.
func (t *Tally) Respond(code int, took time.Duration) {
	t.latency.Observe(took)
	t.codes[min(max(code, 0), len(t.codes)-1)].Add(1)
}

// Observe counts the time of a write that has no response.
func (t *Tally) Observe(took time.Duration) { t.latency.Observe(took) }

// Detail returns a function that describes in a few words how a load is doing: its present rate, lag, and new
// errors.
func (t *Tally) Detail() func() string {
	var mu sync.Mutex
	last, at := int64(0), time.Now()
	text := ""
	var shown *string
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		// A bar asks more often than a new rate is useful.
		if took := time.Since(at); took >= time.Second || text == "" {
			sent := t.Sent.Load()
			rate := 0.0
			if took > 0 {
				rate = float64(sent-last) / took.Seconds()
			}
			last, at = sent, time.Now()
			text = fmt.Sprintf("%d samples, %.0f/s, lag %.1f s, %d retries", sent, rate, time.Duration(t.lag.Load()).Seconds(), t.Retries.Load())
			if c := t.complaint.Load(); c != shown {
				text += ": " + *c
				shown = c
			}
		}
		return text
	}
}

// Delivery is the part of a report that says how much was sent, and with which outcome.
type Delivery struct {
	Kind    string  `json:"kind"`
	Series  int64   `json:"series"`
	Seconds float64 `json:"seconds"`
	// Sent counts each sample or line once, however often it was tried. Acked counts those that a 2xx
	// acknowledged, Dropped those that were refused for good, and Lost those that were given up or were in a
	// buffer when a connection broke.
	Sent    int64 `json:"sent"`
	Acked   int64 `json:"acked"`
	Dropped int64 `json:"dropped"`
	Lost    int64 `json:"lost"`
}

// Traffic is the part of a report that says how fast a load was sent, and at which cost.
type Traffic struct {
	// Rate is in samples or lines a second: acknowledged ones where the protocol acknowledges, written ones
	// elsewhere.
	Rate       float64 `json:"rate"`
	LagSeconds float64 `json:"lag_seconds"`
	MaxLag     float64 `json:"max_lag_seconds"`

	Requests int64            `json:"requests"`
	Retries  int64            `json:"retries"`
	Faults   int64            `json:"connection_errors"`
	Codes    map[string]int64 `json:"codes"`
	Latency  Latency          `json:"latency_seconds"`
	RawBytes int64            `json:"raw_bytes"`
	Bytes    int64            `json:"wire_bytes"`
	// CPUSeconds is the user and system time of this process.
	CPUSeconds    float64 `json:"cpu_seconds"`
	CPUPerMillion float64 `json:"cpu_seconds_per_million"`
}

// Latency holds quantiles over the requests that got a response.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Deliver returns the counts of samples or lines of a load of a kind.
func (t *Tally) Deliver(kind string, series int64, took time.Duration) Delivery {
	return Delivery{
		Kind: kind, Series: series, Seconds: took.Seconds(),
		Sent: t.Sent.Load(), Acked: t.Acked.Load(), Dropped: t.Dropped.Load(), Lost: t.Lost.Load(),
	}
}

// Traffic returns pace and cost of a load. The rate is that of the given number of samples or lines.
func (t *Tally) Traffic(done int64, took, cpu time.Duration) Traffic {
	r := Traffic{
		LagSeconds: time.Duration(t.lag.Load()).Seconds(), MaxLag: time.Duration(t.maxLag.Load()).Seconds(),
		Requests: t.Requests.Load(), Retries: t.Retries.Load(), Faults: t.Faults.Load(), Codes: map[string]int64{},
		Latency: Latency{
			P50: t.latency.Quantile(0.5).Seconds(), P90: t.latency.Quantile(0.9).Seconds(),
			P99: t.latency.Quantile(0.99).Seconds(), Max: t.latency.Max().Seconds(),
		},
		RawBytes: t.RawBytes.Load(), Bytes: t.WireBytes.Load(), CPUSeconds: cpu.Seconds(),
	}
	for code := range t.codes {
		if n := t.codes[code].Load(); n > 0 {
			r.Codes[strconv.Itoa(code)] = n
		}
	}
	if took > 0 {
		r.Rate = float64(done) / took.Seconds()
	}
	if sent := t.Sent.Load(); sent > 0 {
		r.CPUPerMillion = r.CPUSeconds / float64(sent) * 1e6
	}
	return r
}

// WriteFate writes the outcomes of samples or lines whose protocol acknowledges.
func (d *Delivery) WriteFate(w io.Writer) {
	fmt.Fprintf(w, "  acknowledged %d, dropped %d, lost %d\n", d.Acked, d.Dropped, d.Lost)
}

// WriteRequests writes the requests with their status codes and latency.
func (r *Traffic) WriteRequests(w io.Writer) {
	var codes strings.Builder
	for _, code := range slices.Sorted(maps.Keys(r.Codes)) {
		fmt.Fprintf(&codes, ", status %s: %d", code, r.Codes[code])
	}
	fmt.Fprintf(w, "  requests %d, retries %d, connection errors %d%s\n", r.Requests, r.Retries, r.Faults, codes.String())
	fmt.Fprintf(w, "  latency %s\n", r.Latency)
}

// WriteCost writes bytes and CPU time.
func (r *Traffic) WriteCost(w io.Writer) {
	fmt.Fprintf(w, "  %d bytes, %d on the wire\n", r.RawBytes, r.Bytes)
	fmt.Fprintf(w, "  CPU of this process: %.2f s, %.3f s per million samples\n", r.CPUSeconds, r.CPUPerMillion)
}

// String writes the quantiles in milliseconds.
func (l Latency) String() string {
	ms := func(seconds float64) string { return fmt.Sprintf("%.1f ms", seconds*1000) }
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, max %s", ms(l.P50), ms(l.P90), ms(l.P99), ms(l.Max))
}
