package verify

import (
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/wire"
	"github.com/shaledb/shale/internal/model"
)

// message is one TimeSeries as Prometheus' decoder of either version gives it.
type message struct {
	labels    map[string]string
	order     []string // names of labels
	samples   []client.Sample
	start     []int64 // of samples
	exemplars []exemplarsOf
	metadata  string // type, help and unit
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// decode takes a compressed body apart with Prometheus' decoders.
func decode(t tester, l *send.RemoteWrite, compressed []byte, size int) []message {
	t.Helper()
	raw := decompress(t, l.Compression, compressed)
	if len(raw) != size {
		t.Fatalf("%d bytes, want %d", len(raw), size)
	}
	if l.Protocol == wire.V2 {
		return decodeV2(t, raw)
	}
	out, _ := decodeV1(t, raw)
	return out
}

func decodeV1(t tester, raw []byte) (out []message, metadata []prompb.MetricMetadata) {
	t.Helper()
	var req prompb.WriteRequest
	if err := req.Unmarshal(raw); err != nil {
		t.Fatalf("%v", err)
	}
	for _, ts := range req.Timeseries {
		var m message
		b := labels.NewScratchBuilder(0)
		m.take(ts.ToLabels(&b, nil))
		for _, l := range ts.Labels {
			m.order = append(m.order, l.Name)
		}
		for _, s := range ts.Samples {
			m.samples = append(m.samples, client.Sample{Ms: s.Timestamp, Bits: math.Float64bits(s.Value)})
			m.start = append(m.start, 0)
		}
		for i := range ts.Histograms {
			h := &ts.Histograms[i]
			m.histogram(t, h.Timestamp, 0, h.IsFloatHistogram(), h.ToIntHistogram, h.ToFloatHistogram)
		}
		for _, e := range ts.Exemplars {
			m.exemplar(e.ToExemplar(&b, nil).Labels, e.Value, e.Timestamp)
		}
		out = append(out, m)
	}
	return out, req.Metadata
}

func decodeV2(t tester, raw []byte) []message {
	t.Helper()
	var req writev2.Request
	if err := req.Unmarshal(raw); err != nil {
		t.Fatalf("%v", err)
	}
	if len(req.Symbols) == 0 || req.Symbols[0] != "" {
		t.Fatalf("symbols begin with %.2q", req.Symbols)
	}
	seen, used := map[string]bool{}, make([]bool, len(req.Symbols))
	for _, s := range req.Symbols {
		if seen[s] && len(s) != fleet.TraceBytes { // two samples may name one trace
			t.Fatalf("symbol %q comes twice", s)
		}
		seen[s] = true
	}
	b := labels.NewScratchBuilder(0)
	var out []message
	for _, ts := range req.Timeseries {
		var m message
		l, err := ts.ToLabels(&b, req.Symbols)
		if err != nil {
			t.Fatalf("%v", err)
		}
		m.take(l)
		for i := 0; i < len(ts.LabelsRefs); i += 2 {
			m.order = append(m.order, req.Symbols[ts.LabelsRefs[i]])
			used[ts.LabelsRefs[i]], used[ts.LabelsRefs[i+1]] = true, true
		}
		for _, s := range ts.Samples {
			m.samples = append(m.samples, client.Sample{Ms: s.Timestamp, Bits: math.Float64bits(s.Value)})
			m.start = append(m.start, s.StartTimestamp)
		}
		for i := range ts.Histograms {
			h := &ts.Histograms[i]
			m.histogram(t, h.Timestamp, h.StartTimestamp, h.IsFloatHistogram(), h.ToIntHistogram, h.ToFloatHistogram)
		}
		for _, e := range ts.Exemplars {
			ex, err := e.ToExemplar(&b, req.Symbols)
			if err != nil {
				t.Fatalf("%v", err)
			}
			m.exemplar(ex.Labels, e.Value, e.Timestamp)
			used[e.LabelsRefs[0]], used[e.LabelsRefs[1]] = true, true
		}
		meta, err := ts.ToMetadata(req.Symbols)
		if err != nil {
			t.Fatalf("%v", err)
		}
		m.metadata = fmt.Sprintf("%s|%s|%s", meta.Type, meta.Help, meta.Unit)
		used[ts.Metadata.HelpRef], used[ts.Metadata.UnitRef] = true, true
		out = append(out, m)
	}
	for i, u := range used {
		if !u && i > 0 && len(out) > 0 && req.Symbols[i] != fleet.TraceLabel {
			t.Fatalf("symbol %q is not used", req.Symbols[i])
		}
	}
	return out
}

func decompress(t tester, c wire.Compression, compressed []byte) []byte {
	t.Helper()
	if c == wire.Snappy {
		raw, err := snappy.Decode(nil, compressed)
		if err != nil {
			t.Fatalf("%v", err)
		}
		return raw
	}
	var h zstd.Header
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer d.Close()
	raw, err := d.DecodeAll(compressed, nil)
	if herr := h.Decode(compressed); err != nil || herr != nil || !h.HasFCS && len(raw) >= 256 {
		t.Fatalf("%v, %v; size is in the header: %v", err, herr, h.HasFCS)
	}
	return raw
}

func (m *message) take(l labels.Labels) { m.labels = l.Map() }

// histogram checks a histogram as a store does.
func (m *message) histogram(t tester, ms, start int64, float bool, asInt func() *histogram.Histogram, asFloat func() *histogram.FloatHistogram) {
	t.Helper()
	var p prompb.Histogram
	var err error
	if float {
		h := asFloat()
		p, err = prompb.FromFloatHistogram(ms, h), h.Validate()
	} else {
		h := asInt()
		p, err = prompb.FromIntHistogram(ms, h), h.Validate()
	}
	if err != nil && math.Float64bits(p.Sum) != model.StaleNaN {
		t.Fatalf("histogram is not valid: %v", err)
	}
	m.samples = append(m.samples, client.Sample{Ms: ms, Bits: math.Float64bits(p.Sum), Histogram: &p})
	m.start = append(m.start, start)
}

func (m *message) exemplar(l labels.Labels, v float64, ms int64) {
	e := exemplarsOf{Series: l.Map()}
	e.Exemplars = append(e.Exemplars, struct {
		Labels map[string]string `json:"labels"`
		At     float64           `json:"timestamp"`
		Value  string            `json:"value"`
	}{l.Map(), float64(ms), fmt.Sprint(v)})
	m.exemplars = append(m.exemplars, e)
}

// drawLoad draws a load with all that a fleet can do.
func drawLoad(t *rapid.T) *send.RemoteWrite {
	small := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
	l := &send.RemoteWrite{
		Fleet: fleet.Fleet{
			Seed: rapid.Uint64().Draw(t, "seed"), Tenants: small("tenants", 3), Scrapers: small("scrapers", 2), Targets: small("targets", 4),
			Metrics: small("metrics", 4), Series: small("series", 5), Labels: rapid.IntRange(0, 3).Draw(t, "labels"), Name: "m",
			Value:     values.ValueModel(rapid.IntRange(0, int(values.HistogramCustom)).Draw(t, "value")),
			Exemplars: rapid.SampledFrom([]float64{0, 0, 0.5, 1}).Draw(t, "exemplars"), Metadata: rapid.Bool().Draw(t, "metadata"),
		},
		Protocol:    wire.Protocol(rapid.IntRange(0, 1).Draw(t, "protocol")),
		Compression: wire.Compression(rapid.IntRange(0, 1).Draw(t, "compression")), Batch: small("batch", 30), Concurrency: 1,
	}
	l.Fleet.StartTimes = l.Protocol == wire.V2 && rapid.Bool().Draw(t, "start times")
	duration := func(name string, most time.Duration) time.Duration {
		if !rapid.Bool().Draw(t, "has "+name) {
			return 0
		}
		return time.Duration(rapid.Int64Range(1, int64(most/time.Millisecond)).Draw(t, name)) * time.Millisecond
	}
	l.Fleet.Churn = fleet.Churn{
		ValueInterval: duration("value interval", 3*time.Second), Rollout: duration("rollout", 3*time.Second),
		Jitter: duration("jitter", 999*time.Millisecond), StaleMarkers: rapid.Bool().Draw(t, "stale markers"),
	}
	if d := duration("series interval", 5*time.Second); d > 0 {
		l.Fleet.Churn.SeriesInterval = d + time.Second
		l.Fleet.Churn.Relabel = rapid.SampledFrom([]fleet.Spread{{}, {How: fleet.SpreadUniform, By: 2 * time.Second}, {How: fleet.SpreadStagger, By: time.Second}}).Draw(t, "spread")
	}
	if rapid.Bool().Draw(t, "disorder") {
		l.Disorder = fleet.Disorder{
			Late:  pace.Lateness{Share: rapid.Float64Range(0, 1).Draw(t, "late"), By: duration("late by", 5*time.Second)},
			Twice: rapid.Float64Range(0, 1).Draw(t, "twice"),
		}
	}
	l.Schedule = pace.Schedule{Timeline: pace.Timeline{Start: 1_700_000_000e9, Step: 1e9}, Rounds: rapid.SampledFrom([]int{0, testRounds}).Draw(t, "rounds known")}
	return l
}

const testRounds = 12

// TestRequestsAreWhatIsVerified takes all requests of a load apart, and finds in them what verification
// expects to have been sent, as often as it should be, and nothing else.
func TestRequestsAreWhatIsVerified(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLoad(t)
		if err := l.Fleet.Check(); err != nil {
			t.Fatalf("%v", err)
		}
		f, b := &l.Fleet, wire.NewRequests(l.Encoding())
		state := statefile.New(l.Header())
		state.Ended = true
		o := newFleetOrigin(state)
		type id struct {
			tenant int
			labels string
			ms     int64
			round  int // in whose request
		}
		got := map[id][]message{}
		for round := range testRounds {
			for batch := range f.Batches(l.Batch) {
				state.Acks.Ack(round, batch)
				compressed, size, c := b.Fill(batch, round)
				tenant, first, n := f.Batch(batch, l.Batch)
				var sum wire.Contents
				for _, m := range decode(t, l, compressed, size) {
					if len(m.samples) != 1 {
						t.Fatalf("%d samples", len(m.samples))
					}
					if s := m.samples[0]; s.Histogram != nil {
						sum.Histograms++
					} else {
						sum.Samples++
					}
					sum.Exemplars += len(m.exemplars)
					if m.samples[0].Bits == model.StaleNaN {
						sum.Stale++
					}
					at := id{tenant, fmt.Sprint(m.labels), m.samples[0].Ms, round}
					got[at] = append(got[at], m)
				}
				if sum.Late, sum.Twice = c.Late, c.Twice; sum != c || n < 1 || first < 0 {
					t.Fatalf("batch %d of round %d: %+v, said %+v", batch, round, sum, c)
				}
			}
		}
		for g := range f.Total() {
			for round := range testRounds {
				first, second := o.Sendings(g, round)
				_, twice := o.Again(g, round)
				known := o.certainty(g, round)
				if want := round >= o.First(o.Place(g).Target) && first < testRounds; want != (known == surely) {
					t.Fatalf("series %d, round %d: certainty %d", g, round, known)
				}
				at := id{o.Place(g).Tenant, fmt.Sprint(o.LabelsOf(g, o.cycle(g, round))), o.ms(g, round), first}
				if known == surely {
					take(t, o, got, at, g, round)
					at.round = second
					if twice && second < testRounds {
						take(t, o, got, at, g, round)
					}
				}
				if cycle, known := o.ended(g, round); known == surely {
					at := id{o.Place(g).Tenant, fmt.Sprint(o.LabelsOf(g, cycle)), o.ms(g, round), round}
					m := got[at]
					if len(m) != 1 || m[0].samples[0].Bits != model.StaleNaN || (m[0].samples[0].Histogram != nil) != f.Value.Histogram() {
						t.Fatalf("series %d, round %d: marker %+v", g, round, m)
					}
					delete(got, at)
				}
			}
		}
		for at, m := range got {
			if len(m) > 0 {
				t.Fatalf("%+v: nobody expects %+v", at, m)
			}
		}
	})
}

// take removes one message and compares it.
func take[ID comparable](t *rapid.T, o *fleetOrigin, got map[ID][]message, at ID, g int64, round int) {
	t.Helper()
	if len(got[at]) == 0 {
		t.Fatalf("series %d, round %d is not sent: %+v", g, round, at)
	}
	m := got[at][0]
	got[at] = got[at][1:]
	var want value
	o.value(g, round, &want)
	if why := want.differs(m.samples[0]); why != "" {
		t.Fatalf("series %d, round %d: %s", g, round, why)
	}
	if !maps.Equal(m.labels, o.LabelsOf(g, o.cycle(g, round))) || len(m.order) != len(m.labels) {
		t.Fatalf("labels %v", m.labels)
	}
	for i, name := range m.order {
		if i > 0 && name <= m.order[i-1] {
			t.Fatalf("labels in order %v", m.order)
		}
	}
	if ms, ok := o.roundAt(g, m.samples[0].Ms); ms != round || !ok {
		t.Fatalf("time %d is of round %d, want %d", m.samples[0].Ms, ms, round)
	}
	trace, bits, has := o.exemplarOf(g, round)
	if has != (len(m.exemplars) == 1) {
		t.Fatalf("exemplars %v, want %v", m.exemplars, has)
	}
	if has {
		e := m.exemplars[0].Exemplars[0]
		if len(e.Labels) != 1 || e.Labels[fleet.TraceLabel] != trace || e.Value != fmt.Sprint(math.Float64frombits(bits)) || e.At != float64(m.samples[0].Ms) {
			t.Fatalf("exemplar %v, want %s of %v", e, trace, math.Float64frombits(bits))
		}
	}
	if start := m.start[0]; (start != 0) != (o.StartTimes && o.Value.Cumulative()) || start > m.samples[0].Ms {
		t.Fatalf("start %d of a sample at %d", start, m.samples[0].Ms)
	}
	if want := fmt.Sprintf("%s|%s|%s", o.TypeName(o.Place(g).Metric), o.AppendHelp(nil, o.Place(g).Metric), o.Unit()); o.Metadata && m.metadata != "" && m.metadata != want {
		t.Fatalf("metadata %s, want %s", m.metadata, want)
	}
}

// unpack checks a compressed request of the default kind.
func unpack(t *testing.T) func(compressed []byte, size int, _ wire.Contents) []byte {
	return func(compressed []byte, size int, _ wire.Contents) []byte {
		t.Helper()
		raw := decompress(t, wire.Snappy, compressed)
		if len(raw) != size {
			t.Fatalf("%d bytes, want %d", len(raw), size)
		}
		return raw
	}
}
