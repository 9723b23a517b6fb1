package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/wire"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

// promLoad is a load of 72 series in batches of 20.
func promLoad(t *testing.T, url string, timing pace.Timing) *send.RemoteWrite {
	t.Helper()
	l := small(t, url, timing)
	l.Fleet.Targets, l.Fleet.Metrics, l.Fleet.Series = 3, 4, 6
	l.Batch = 20
	return l
}

// load is a load of any protocol.
type load[Report any] interface {
	Header() statefile.Header
	Run(ctx context.Context) (*statefile.State, *Report, error)
}

// runAndReload runs a load that records its state, and returns the state as it is known and as its file says.
func runAndReload[Report any](t *testing.T, l load[Report], record **statefile.Writer) (map[string]*statefile.State, *Report) {
	t.Helper()
	fs := vfs.NewMem()
	var err error
	if *record, err = statefile.Create(fs, "state", l.Header()); err != nil {
		t.Fatal(err)
	}
	kept, report, err := l.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := (*record).Close(); err != nil {
		t.Fatal(err)
	}
	loaded, err := statefile.Load(fs, "state")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*statefile.State{"kept": kept, "loaded": loaded}, report
}

// TestPrometheusKeepsAll sends every kind of load to Prometheus' own store and reads it back.
func TestPrometheusKeepsAll(t *testing.T) {
	t.Parallel()
	churn := fleet.Churn{
		SeriesInterval: 4 * time.Second, Relabel: fleet.Spread{How: fleet.SpreadStagger, By: time.Second}, Rollout: 1500 * time.Millisecond,
		Jitter: 400 * time.Millisecond, StaleMarkers: true,
	}
	for name, change := range racetest.Only(map[string]func(*send.RemoteWrite){
		"v2":                func(l *send.RemoteWrite) { l.Protocol = wire.V2 },
		"v1, zstd":          func(l *send.RemoteWrite) { l.Compression = wire.Zstd },
		"v2, zstd, vmagent": func(l *send.RemoteWrite) { l.Protocol, l.Compression, l.Emulate = wire.V2, wire.Zstd, send.VMAgent },
		"walk":              func(l *send.RemoteWrite) { l.Fleet.Value = values.Walk },
		"histogram, v1":     func(l *send.RemoteWrite) { l.Fleet.Value = values.HistogramInt },
		"histogram, v2":     func(l *send.RemoteWrite) { l.Fleet.Value, l.Protocol = values.HistogramInt, wire.V2 },
		"float histogram":   func(l *send.RemoteWrite) { l.Fleet.Value, l.Protocol = values.HistogramFloat, wire.V2 },
		"custom histogram":  func(l *send.RemoteWrite) { l.Fleet.Value, l.Protocol = values.HistogramCustom, wire.V2 },
		"churn":             func(l *send.RemoteWrite) { l.Fleet.Churn = churn },
		"churn, v2, histogram": func(l *send.RemoteWrite) {
			l.Fleet.Churn, l.Protocol, l.Fleet.Value = churn, wire.V2, values.HistogramInt
		},
		"churn, counter, values stay": func(l *send.RemoteWrite) {
			l.Fleet.Churn, l.Fleet.Value = churn, values.Counter
			l.Fleet.Churn.ValueInterval = 3 * time.Second
		},
		"disorder": func(l *send.RemoteWrite) {
			l.Disorder = fleet.Disorder{Late: pace.Lateness{Share: 0.2, By: 8 * time.Second}, Twice: 0.2}
		},
		"disorder, histogram": func(l *send.RemoteWrite) {
			l.Disorder, l.Fleet.Value, l.Protocol = fleet.Disorder{Late: pace.Lateness{Share: 0.3, By: 5 * time.Second}, Twice: 0.3}, values.HistogramFloat, wire.V2
		},
		"all at once": func(l *send.RemoteWrite) {
			l.Disorder, l.Fleet.Churn, l.Protocol = fleet.Disorder{Late: pace.Lateness{Share: 0.2, By: 8 * time.Second}, Twice: 0.2}, churn, wire.V2
			l.Fleet.Tenants, l.Fleet.Scrapers = 2, 2
		},
		"exemplars, v1": func(l *send.RemoteWrite) { l.Fleet.Exemplars, l.Fleet.Metadata = 0.5, true },
		"exemplars, v2, histogram": func(l *send.RemoteWrite) {
			l.Fleet.Exemplars, l.Fleet.Metadata, l.Fleet.StartTimes = 0.5, true, true
			l.Protocol, l.Fleet.Value, l.Fleet.Tenants = wire.V2, values.HistogramInt, 2
		},
	}, "v1, zstd", "v2, zstd, vmagent", "all at once", "exemplars, v2, histogram") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newPromStore(t)
			url := store.serve()
			const rounds = 20
			l := promLoad(t, url, pace.Timing{Rounds: rounds})
			change(l)
			states, report := runAndReload(t, l, &l.State)
			if report.Acked != report.Sent || report.Misreported+report.Retries+report.Dropped != 0 || report.Codes["204"] != report.Requests {
				t.Errorf("report %+v", report)
			}
			points := report.Sent - report.Twice - report.StaleMarkers
			if full := l.Fleet.Total() * rounds; l.Fleet.Churn.Rollout == 0 && points != full || points > full || points < full/2 {
				t.Errorf("%d samples of %d", points, full)
			}
			for which, s := range states {
				v := verify(t, url, s, func(v *SampleVerifier) {
					v.Server.Tenant, v.Exemplars, v.Metadata = "t1", true, true
					v.Chunk = map[string]int64{"kept": 1 << 40, "loaded": 25}[which]
				})
				if !v.OK() || v.Compared != points || v.Counted != points || v.CountedOf != points || v.Unacked != 0 ||
					v.Markers != report.StaleMarkers || v.Exemplars != report.Exemplars || (v.Metadata > 0) != l.Fleet.Metadata {
					t.Errorf("%s: %+v\nreport %+v", which, v, report)
				}
			}
			if l.Fleet.Value.Histogram() {
				return
			}
			v := verify(t, url, states["kept"], func(v *SampleVerifier) { v.Over, v.Server.Tenant = OverQuery, "t1" })
			if !v.OK() || v.Compared != points {
				t.Errorf("by queries: %+v", v)
			}
		})
	}
}

// TestTamperedReads changes single things in what remote read answers.
func TestTamperedReads(t *testing.T) {
	racetest.SkipSerial(t) // TestPrometheusKeepsAll reads with goroutines
	t.Parallel()
	store := newPromStore(t)
	url := store.serve()
	l := promLoad(t, url, pace.Timing{Rounds: 12})
	l.Fleet.Value, l.Protocol = values.HistogramInt, wire.V2
	l.Fleet.Churn = fleet.Churn{SeriesInterval: 4 * time.Second, StaleMarkers: true}
	states, _ := runAndReload(t, l, &l.State)
	h := func(r *prompb.ReadResponse, i int) *prompb.Histogram {
		return &r.Results[0].Timeseries[0].Histograms[i]
	}
	drop := func(r *prompb.ReadResponse, i int) {
		ts := r.Results[0].Timeseries[0]
		ts.Histograms = append(ts.Histograms[:i:i], ts.Histograms[i+1:]...)
	}
	for name, c := range map[string]struct {
		tamper func(*prompb.ReadResponse)
		found  func(v *Samples) bool
	}{
		"nothing":       {func(*prompb.ReadResponse) {}, (*Samples).OK},
		"count":         {func(r *prompb.ReadResponse) { h(r, 1).Count = &prompb.Histogram_CountInt{CountInt: 1} }, wrong},
		"kind":          {func(r *prompb.ReadResponse) { h(r, 1).Count = &prompb.Histogram_CountFloat{CountFloat: 1} }, wrong},
		"zero count":    {func(r *prompb.ReadResponse) { h(r, 1).ZeroCount = &prompb.Histogram_ZeroCountInt{ZeroCountInt: 1} }, wrong},
		"sum":           {func(r *prompb.ReadResponse) { h(r, 1).Sum = math.Nextafter(h(r, 1).Sum, 0) }, wrong},
		"schema":        {func(r *prompb.ReadResponse) { h(r, 1).Schema++ }, wrong},
		"threshold":     {func(r *prompb.ReadResponse) { h(r, 1).ZeroThreshold *= 2 }, wrong},
		"bucket":        {func(r *prompb.ReadResponse) { h(r, 1).PositiveDeltas[2]++ }, wrong},
		"buckets moved": {func(r *prompb.ReadResponse) { h(r, 1).PositiveSpans[0].Offset++ }, wrong},
		"spans":         {func(r *prompb.ReadResponse) { h(r, 1).PositiveSpans[0].Length++ }, wrong},
		"hint": {func(r *prompb.ReadResponse) {
			if h := h(r, 1); h.ResetHint == prompb.Histogram_GAUGE {
				h.ResetHint = prompb.Histogram_UNKNOWN
			} else {
				h.ResetHint = prompb.Histogram_GAUGE
			}
		}, wrong},
		"bounds":      {func(r *prompb.ReadResponse) { h(r, 1).CustomValues = []float64{1} }, wrong},
		"marker":      {func(r *prompb.ReadResponse) { h(r, 4).Sum = math.NaN() }, wrong},
		"lost":        {func(r *prompb.ReadResponse) { drop(r, 2) }, func(v *Samples) bool { return v.Missing == 72 && v.Wrong+v.Extra == 0 }},
		"marker lost": {func(r *prompb.ReadResponse) { drop(r, 4) }, func(v *Samples) bool { return v.Missing == 72 && v.Wrong+v.Extra == 0 }},
		"cycle lost": {func(r *prompb.ReadResponse) { r.Results[0].Timeseries = r.Results[0].Timeseries[1:] },
			func(v *Samples) bool { return v.Missing == 5*72 && v.Wrong+v.Extra == 0 }},
		"moved": {func(r *prompb.ReadResponse) { h(r, 1).Timestamp++ }, func(v *Samples) bool { return v.Missing == 72 && v.Extra == 72 }},
		"in another cycle": {func(r *prompb.ReadResponse) {
			ts := r.Results[0].Timeseries
			ts[1].Histograms = append(ts[1].Histograms, ts[0].Histograms[0])
			drop(r, 0)
		}, func(v *Samples) bool { return v.Missing == 72 && v.Extra == 72 }},
		"marker without reason": {func(r *prompb.ReadResponse) { h(r, 1).Sum = math.Float64frombits(model.StaleNaN) }, wrong},
		"a float": {func(r *prompb.ReadResponse) {
			ts := r.Results[0].Timeseries[0]
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: ts.Histograms[1].Timestamp, Value: 1})
			drop(r, 1)
		}, wrong},
	} {
		store.change(func() { store.tamper = c.tamper })
		if v := verify(t, url, states["kept"], func(v *SampleVerifier) { v.Server.Tenant, v.Counts = "t1", false }); !c.found(v) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func wrong(v *Samples) bool { return v.Wrong == 72 && v.Missing+v.Extra == 0 }

// TestTenantsMixedUp: a store that gives one tenant what another has written is found out.
func TestTenantsMixedUp(t *testing.T) {
	store := newPromStore(t)
	url := store.serve()
	l := promLoad(t, url, pace.Timing{Rounds: 3})
	l.Fleet.Tenants = 2
	states, _ := runAndReload(t, l, &l.State)
	store.change(func() {
		if len(store.tenants) != 2 || store.tenants["t1-0"] == nil || store.tenants["t1-1"] == nil {
			t.Fatalf("tenants %v", store.tenants)
		}
		store.tenants["t1-0"], store.tenants["t1-1"] = store.tenants["t1-1"], store.tenants["t1-0"]
	})
	v := verify(t, url, states["kept"], func(v *SampleVerifier) { v.Server.Tenant = "t1" })
	if v.Wrong < v.Compared {
		t.Errorf("%+v", v)
	}
}

func TestOverQueryRefusesHistograms(t *testing.T) {
	f := testFleet()
	f.Value = values.HistogramInt
	v := SampleVerifier{State: statefile.New(statefile.Header{RemoteWrite: &f, Timeline: pace.Timeline{Step: 1}, Batch: 1}), Series: 1, Over: OverQuery, Chunk: 1, Concurrency: 1}
	if _, err := v.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "remote-read") {
		t.Errorf("%v", err)
	}
}

// TestWrittenHeaders: of version 2, a 2xx that says that nothing was written is a refusal, and one that
// counts otherwise than was sent is told.
func TestWrittenHeaders(t *testing.T) {
	for _, c := range []struct {
		protocol             wire.Protocol
		headers              []string // samples, histograms, exemplars
		acked, dropped, told int64
	}{
		{wire.V1, nil, 72, 0, 0},
		{wire.V2, nil, 0, 72, 1},
		{wire.V2, []string{"0", "0", "0"}, 0, 72, 1},
		{wire.V2, []string{"72"}, 72, 0, 0},
		{wire.V2, []string{"72", "0", "0"}, 72, 0, 0},
		{wire.V2, []string{"71", "0", "0"}, 72, 0, 1},
		{wire.V2, []string{"x", "0", "1"}, 72, 0, 1},
	} {
		store := newPromStore(t)
		store.change(func() {
			store.before = func(w http.ResponseWriter, _ *http.Request) int {
				for i, value := range c.headers {
					w.Header().Set([]string{send.WrittenSamples, send.WrittenHistograms, send.WrittenExemplars}[i], value)
				}
				return http.StatusNoContent
			}
		})
		l := promLoad(t, store.serve(), pace.Timing{Rounds: 1})
		l.Protocol, l.Batch = c.protocol, 100
		_, report, err := l.Run(t.Context())
		if err != nil || report.Acked != c.acked || report.Dropped != c.dropped || report.Misreported != c.told || report.Requests != 1 {
			t.Errorf("%v %v: %+v, %v", c.protocol, c.headers, report, err)
		}
	}
}

// TestHeads checks what each kind of request says of itself.
func TestHeads(t *testing.T) {
	for _, c := range []struct {
		protocol    wire.Protocol
		compression wire.Compression
		emulate     send.Emulation
		want        string
	}{
		{wire.V1, wire.Snappy, send.Prometheus, "application/x-protobuf snappy 0.1.0 -"},
		{wire.V1, wire.Zstd, send.Prometheus, "application/x-protobuf zstd 0.1.0 -"},
		{wire.V1, wire.Zstd, send.VMAgent, "application/x-protobuf zstd - 1"},
		{wire.V1, wire.Snappy, send.VMAgent, "application/x-protobuf snappy 0.1.0 -"},
		{wire.V2, wire.Snappy, send.Prometheus, "application/x-protobuf;proto=io.prometheus.write.v2.Request snappy 2.0.0 -"},
		{wire.V2, wire.Zstd, send.VMAgent, "application/x-protobuf;proto=io.prometheus.write.v2.Request zstd 2.0.0 -"},
	} {
		store := newPromStore(t)
		l := promLoad(t, store.serve(), pace.Timing{Rounds: 1})
		l.Protocol, l.Compression, l.Emulate, l.Tenant = c.protocol, c.compression, c.emulate, ""
		if _, _, err := l.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var head http.Header
		store.change(func() { head = store.heads[0] })
		get := func(name string) string {
			if v := head.Get(name); v != "" {
				return v
			}
			return "-"
		}
		got := fmt.Sprintf("%s %s %s %s", get("Content-Type"), get("Content-Encoding"), get("X-Prometheus-Remote-Write-Version"), get("X-VictoriaMetrics-Remote-Write-Version"))
		if got != c.want || get("X-Scope-OrgID") != "-" {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestRemoteWriteCheck: Check refuses loads that cannot be sent.
func TestRemoteWriteCheck(t *testing.T) {
	l := small(t, "http://x", pace.Timing{Interval: time.Second, Rounds: 1})
	l.Fleet.Churn.Jitter = time.Second
	if _, _, err := l.Run(t.Context()); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a jitter of a whole step: %v", err)
	}
	l.Fleet.Churn.Jitter, l.Fleet.StartTimes = 0, true
	if err := l.Check(); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("start timestamps in version 1: %v", err)
	}
	l.Fleet.StartTimes, l.Disorder.Twice = false, 2
	if err := l.Check(); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a share of 2: %v", err)
	}
}
