package promwrite

import (
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	bodies "github.com/shaledb/shale/internal/write/body"
)

// loads are the bodies whose cost is measured, each of n series.
func loads(t testing.TB, n int) map[string]load {
	usual, rebuilt, native := fleet(n), fleet(n), fleet(n)
	for i := range rebuilt.Timeseries {
		rebuilt.Timeseries[i].Labels[3].Value = ""
	}
	for i := range native.Timeseries {
		native.Timeseries[i].Samples = nil
		native.Timeseries[i].Histograms = []prompb.Histogram{prompb.FromIntHistogram(nowMs, latencies(i))}
	}
	full := newRequestV2()
	for i := range n {
		pairs := []string{}
		for _, l := range usual.Timeseries[i].Labels {
			pairs = append(pairs, l.Name, l.Value)
		}
		full.series(func(ts *writev2.TimeSeries) {
			ts.Samples = []writev2.Sample{{Value: float64(i), Timestamp: nowMs, StartTimestamp: nowMs - 1000}}
			ts.Exemplars = []writev2.Exemplar{{LabelsRefs: full.refs("trace_id", "0123456789abcdef"), Value: 1, Timestamp: nowMs}}
			ts.Metadata = writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: full.Symbolize("How many there were so far of what there is.")}
		}, pairs...)
	}
	v1Raw := func(req *prompb.WriteRequest) load {
		raw, err := req.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return load{v1, raw}
	}
	v2Raw := func(req *writev2.Request) load {
		raw, err := req.OptimizedMarshal(nil)
		if err != nil {
			t.Fatal(err)
		}
		return load{v2, raw}
	}
	return map[string]load{
		"v1": v1Raw(usual), "v1 rebuilt": v1Raw(rebuilt), "v1 histograms": v1Raw(native),
		"v2": v2Raw(translate(usual)), "v2 histograms": v2Raw(translate(native)), "v2 with exemplars, starts and metadata": v2Raw(full.done()),
	}
}

type load struct {
	version version
	raw     []byte
}

// latencies is a histogram as an instrumented server has it: 20 buckets in 4 spans.
func latencies(i int) *histogram.Histogram {
	h := &histogram.Histogram{Schema: 3, ZeroThreshold: 2.938735877055719e-39, ZeroCount: 2, Sum: 18.4 + float64(i)}
	h.PositiveSpans = []histogram.Span{{Offset: -20, Length: 8}, {Offset: 2, Length: 5}, {Offset: 1, Length: 6}, {Offset: 3, Length: 1}}
	for range 20 {
		h.PositiveBuckets = append(h.PositiveBuckets, 1)
	}
	h.Count = 2 + 20*21/2
	return h
}

// TestWalkAllocatesNothing: the walk and the decoding do not allocate once they have their memory.
func TestWalkAllocatesNothing(t *testing.T) {
	alloctest.Counts(t)
	const n = 500
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	d := bodies.New("remote write", "samples")
	for name, l := range loads(t, n) {
		for packed, body := range map[bodies.Encoding][]byte{bodies.Snappy: snappy.Encode(nil, l.raw), bodies.Zstd: packer.EncodeAll(l.raw, nil)} {
			out, w, b := new(bodies.Buffer), new(walker), new(model.Batch)
			reserve := func(int64) error { return nil }
			run := func() {
				b.Reset()
				if err := d.Decode(packed, body, out, 0, reserve); err != nil {
					t.Fatal(err)
				}
				w.start(l.version, out.Bytes, seed, write.Limits{}, b, reserve)
				if err := w.walk(); err != nil {
					t.Fatal(err)
				}
			}
			// One is of the decoder of zstd now and then, for a table that it keeps.
			if got := testing.AllocsPerRun(20, run); got > 0 && (packed == bodies.Snappy || got > 1) {
				t.Errorf("%s: %v allocations for %d series", name, got, n)
			}
			if len(b.Keys) != n || len(w.left) > 0 || w.empty > 0 {
				t.Errorf("%s: %d series, left out %v", name, len(b.Keys), w.left)
			}
		}
	}
}

func BenchmarkReceive(b *testing.B) {
	const n = 2000
	d := bodies.New("remote write", "samples")
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		b.Fatal(err)
	}
	reserve := func(int64) error { return nil }
	for name, l := range loads(b, n) {
		report := func(b *testing.B, raw []byte) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/series")
			b.ReportMetric(float64(len(raw))/n, "bytes/series")
		}
		for packing, body := range map[string][]byte{"snappy": snappy.Encode(nil, l.raw), "zstd": packer.EncodeAll(l.raw, nil)} {
			b.Run(name+"/"+packing, func(b *testing.B) {
				out := new(bodies.Buffer)
				for b.Loop() {
					e := map[string]bodies.Encoding{"snappy": bodies.Snappy, "zstd": bodies.Zstd}[packing]
					if err := d.Decode(e, body, out, 0, reserve); err != nil {
						b.Fatal(err)
					}
				}
				report(b, body)
			})
		}
		b.Run(name+"/walk", func(b *testing.B) {
			w, batch := new(walker), new(model.Batch)
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				w.start(l.version, l.raw, seed, write.Limits{}, batch, reserve)
				if err := w.walk(); err != nil {
					b.Fatal(err)
				}
			}
			report(b, l.raw)
		})
	}
}
