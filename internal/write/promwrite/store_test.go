package promwrite

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

const seed model.KeySeed = 0x5ca1ab1e

// now is the clock of all tests: the time of their samples.
const nowMs = 1_700_000_000_000

func newPath(s *writetest.Store, limits write.Limits) *write.Path {
	return write.New(write.Options{Seed: seed, Head: s, Journal: s, Metadata: s, Limits: limits, Now: func() int64 { return nowMs * 1_000_000 }})
}

func testLimits() write.Limits {
	return write.Limits{MaxInflightBytes: 64 << 20, MaxBodyBytes: 1 << 20, MaxDecodedBytes: 4 << 20, MaxLabels: 64,
		MaxNameBytes: 1024, MaxValueBytes: 4096, MaxBuckets: 1000, MaxFuture: 10 * time.Minute}
}

func newHandler(t testing.TB, limits write.Limits) (*Handler, *writetest.Store) {
	t.Helper()
	s := writetest.NewStore(seed)
	return New(newPath(s, limits), nil), s
}

// send posts a body with the usual headers, changed by the pairs of more.
func send(h http.Handler, body []byte, more ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "snappy")
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func encode(t testing.TB, req *prompb.WriteRequest) []byte {
	t.Helper()
	raw, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return snappy.Encode(nil, raw)
}

// typeV2 is the Content-Type of version 2.
const typeV2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"

// sendV2 posts a body of version 2.
func sendV2(h http.Handler, body []byte, more ...string) *httptest.ResponseRecorder {
	return send(h, body, append([]string{"Content-Type", typeV2}, more...)...)
}

func encodeV2(t testing.TB, req *writev2.Request) []byte {
	t.Helper()
	raw, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return snappy.Encode(nil, raw)
}

// requestV2 makes a request of version 2 and hands out references.
type requestV2 struct {
	writev2.Request
	writev2.SymbolsTable
}

func newRequestV2() *requestV2 { return &requestV2{SymbolsTable: writev2.NewSymbolTable()} }

// series adds a series with these labels, which fill fills.
func (r *requestV2) series(fill func(ts *writev2.TimeSeries), pairs ...string) {
	ts := writev2.TimeSeries{LabelsRefs: r.refs(pairs...)}
	fill(&ts)
	r.Timeseries = append(r.Timeseries, ts)
}

func (r *requestV2) refs(words ...string) (refs []uint32) {
	for _, word := range words {
		refs = append(refs, r.Symbolize(word))
	}
	return refs
}

// done returns the request.
func (r *requestV2) done() *writev2.Request {
	r.Request.Symbols = r.SymbolsTable.Symbols()
	return &r.Request
}

// translate makes version 2 of a request of version 1, with floats and histograms alone.
func translate(req *prompb.WriteRequest) *writev2.Request {
	r := newRequestV2()
	for i := range req.Timeseries {
		var pairs []string
		for _, l := range req.Timeseries[i].Labels {
			pairs = append(pairs, l.Name, l.Value)
		}
		r.series(func(ts *writev2.TimeSeries) {
			for _, s := range req.Timeseries[i].Samples {
				ts.Samples = append(ts.Samples, writev2.Sample{Value: s.Value, Timestamp: s.Timestamp})
			}
			for _, h := range req.Timeseries[i].Histograms {
				if h.IsFloatHistogram() {
					ts.Histograms = append(ts.Histograms, writev2.FromFloatHistogram(0, h.Timestamp, h.ToFloatHistogram()))
				} else {
					ts.Histograms = append(ts.Histograms, writev2.FromIntHistogram(0, h.Timestamp, h.ToIntHistogram()))
				}
			}
		}, pairs...)
	}
	return r.done()
}

func series(samples []prompb.Sample, pairs ...string) prompb.TimeSeries {
	ts := prompb.TimeSeries{Samples: samples}
	for i := 0; i < len(pairs); i += 2 {
		ts.Labels = append(ts.Labels, prompb.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return ts
}

func sample(ms int64, v float64) []prompb.Sample {
	return []prompb.Sample{{Timestamp: ms, Value: v}}
}

// fleet makes n series of about 580 bytes, as a fleet of targets with ten labels of its own sends them.
func fleet(n int) *prompb.WriteRequest {
	req := &prompb.WriteRequest{}
	for i := range n {
		pairs := []string{"__name__", fmt.Sprintf("avalanche_gauge_metric_mmmmm_0_%d", i%200), "cluster", "eu-west-1-production",
			"instance", fmt.Sprintf("10.12.%d.%d:9001", i/200%256, i/51200), "job", "kubernetes-pods/avalanche"}
		for j := range 10 {
			pairs = append(pairs, fmt.Sprintf("label_key_kkkkk_%d", j), fmt.Sprintf("label_val_vvvvv_%d", j))
		}
		pairs = append(pairs, "namespace", "load", "pod", fmt.Sprintf("avalanche-%d", i/200), "series_id", fmt.Sprint(i%100))
		req.Timeseries = append(req.Timeseries, series(sample(nowMs, float64(i%100)), pairs...))
	}
	return req
}
