package load

import (
	"strconv"
	"sync/atomic"
	"time"
)

// Tally counts what a load does, while it does it. It may be used by several goroutines; the zero value is ready.
type Tally struct {
	sent, acked, dropped, lost atomic.Int64 // samples; sent counts each once, however often it is tried
	requests, retries, faults  atomic.Int64 // faults: attempts that no answer came to
	rawBytes, wireBytes        atomic.Int64
	lineBytes                  atomic.Int64 // of lines that were acknowledged
	pushes                     atomic.Int64 // of lines, that are over
	histograms, exemplars      atomic.Int64 // of what was sent
	stale, behind, twice       atomic.Int64 // of samples and histograms
	misreported                atomic.Int64 // requests that a 2xx answered whose headers say something else
	codes                      [600]atomic.Int64
	latency                    Histogram
	lag, maxLag                atomic.Int64 // ns: latest, greatest
	complaint                  atomic.Pointer[string]
}

// Sent returns the samples sent so far, each counted once.
func (t *Tally) Sent() int64 { return t.sent.Load() }

// Scraped returns the scrapes so far.
func (t *Tally) Scraped() int64 { return t.requests.Load() }

// count notes what a request holds.
func (t *Tally) count(c *contents) {
	t.sent.Add(int64(c.points()))
	t.histograms.Add(int64(c.histograms))
	t.exemplars.Add(int64(c.exemplars))
	t.stale.Add(int64(c.stale))
	t.behind.Add(int64(c.late))
	t.twice.Add(int64(c.twice))
}

// late notes how late a part of the load was.
func (t *Tally) late(lag time.Duration) {
	t.lag.Store(int64(lag))
	storeMax(&t.maxLag, int64(lag))
}

func (t *Tally) complain(text string) { t.complaint.Store(&text) }

// Report is the outcome of a load, as it is printed.
type Report struct {
	Kind    string  `json:"kind"`
	Series  int64   `json:"series"`
	Seconds float64 `json:"seconds"`
	// Sent counts samples, or lines, once, however often they were tried; Acked those that a 2xx answered; Dropped those that
	// were refused for good; Lost those that were given up or stood in a buffer when a connection broke.
	Sent    int64 `json:"sent"`
	Acked   int64 `json:"acked"`
	Dropped int64 `json:"dropped"`
	Lost    int64 `json:"lost"`
	// Of what was sent: native histograms, exemplars, which are not counted in Sent, stale markers, samples that came
	// behind newer ones, and samples that had been sent before.
	Histograms   int64 `json:"histograms,omitempty"`
	Exemplars    int64 `json:"exemplars,omitempty"`
	StaleMarkers int64 `json:"stale_markers,omitempty"`
	Late         int64 `json:"late,omitempty"`
	Twice        int64 `json:"twice,omitempty"`
	// Misreported counts requests that a 2xx answered although the headers of remote write 2.0 count less or more than
	// they hold. Those of which nothing was written are dropped.
	Misreported int64 `json:"misreported,omitempty"`
	// LineBytes are those of acknowledged lines; LineRate is in bytes of them a second.
	LineBytes int64   `json:"line_bytes,omitempty"`
	LineRate  float64 `json:"line_bytes_per_second,omitempty"`
	// Rate is in samples or lines a second: acknowledged ones for remote write and for lines, written ones for Graphite and
	// for a target.
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
	// CPU is what this process used, user and system, and what that is for a million samples.
	CPUSeconds    float64 `json:"cpu_seconds"`
	CPUPerMillion float64 `json:"cpu_seconds_per_million"`
	CPUPerGB      float64 `json:"cpu_seconds_per_gb,omitempty"` // of lines
	LastError     string  `json:"last_error,omitempty"`

	Received *Received     `json:"received,omitempty"`
	Verified *Verification `json:"verification,omitempty"`

	// Needles are what can be searched for in lines that were sent, and Lines what reading them back has found.
	Needles []Needle         `json:"needles,omitempty"`
	Lines   *LogVerification `json:"verification_of_lines,omitempty"`
}

// Latency holds quantiles over the requests that were answered.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Received is what the server's own counter said of a Graphite load.
type Received struct {
	Points uint64 `json:"points"` // that it must have kept
	Died   bool   `json:"server_died"`
}

func (t *Tally) report(kind string, series int64, took time.Duration, cpu time.Duration) *Report {
	r := &Report{
		Kind: kind, Series: series, Seconds: took.Seconds(),
		Sent: t.sent.Load(), Acked: t.acked.Load(), Dropped: t.dropped.Load(), Lost: t.lost.Load(),
		Histograms: t.histograms.Load(), Exemplars: t.exemplars.Load(), StaleMarkers: t.stale.Load(),
		Late: t.behind.Load(), Twice: t.twice.Load(), Misreported: t.misreported.Load(),
		LagSeconds: time.Duration(t.lag.Load()).Seconds(), MaxLag: time.Duration(t.maxLag.Load()).Seconds(),
		Requests: t.requests.Load(), Retries: t.retries.Load(), Faults: t.faults.Load(), Codes: map[string]int64{},
		Latency: Latency{
			P50: t.latency.Quantile(0.5).Seconds(), P90: t.latency.Quantile(0.9).Seconds(),
			P99: t.latency.Quantile(0.99).Seconds(), Max: t.latency.Max().Seconds(),
		},
		LineBytes: t.lineBytes.Load(), RawBytes: t.rawBytes.Load(), Bytes: t.wireBytes.Load(), CPUSeconds: cpu.Seconds(),
	}
	for code := range t.codes {
		if n := t.codes[code].Load(); n > 0 {
			r.Codes[strconv.Itoa(code)] = n
		}
	}
	if text := t.complaint.Load(); text != nil {
		r.LastError = *text
	}
	done := r.Acked
	if kind != kindRemoteWrite && kind != kindLogs {
		done = r.Sent
	}
	if r.Seconds > 0 {
		r.Rate = float64(done) / r.Seconds
		r.LineRate = float64(r.LineBytes) / r.Seconds
	}
	if r.LineBytes > 0 {
		r.CPUPerGB = r.CPUSeconds / float64(r.LineBytes) * 1e9
	}
	if r.Sent > 0 {
		r.CPUPerMillion = r.CPUSeconds / float64(r.Sent) * 1e6
	}
	return r
}

// The kinds of load.
const (
	kindGraphite    = "graphite"
	kindRemoteWrite = "remote-write"
	kindTarget      = "target"
	kindLogs        = "logs"
)

// Read counts lines that were read back, for the same end as Compared.
func (t *Tally) Read(lines int) { t.sent.Add(int64(lines)) }

// Pushed returns the pushes that are over, whatever became of them.
func (t *Tally) Pushed() int64 { return t.pushes.Load() }

// Compared counts a series that was read back, so that the meter of a verification can show it.
func (t *Tally) Compared() { t.sent.Add(1) }
