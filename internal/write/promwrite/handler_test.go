package promwrite

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

func TestStoresEveryRowBitForBit(t *testing.T) {
	h, s := newHandler(t, testLimits())
	req := fleet(300)
	for i := range req.Timeseries {
		req.Timeseries[i].Samples[0].Value = math.Float64frombits(0x7ff8_0000_0000_0000 + uint64(i))
	}
	for range 2 { // new series, then known ones
		if w := send(h, encode(t, req)); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if len(s.Rows) != 300 {
		t.Fatalf("%d series", len(s.Rows))
	}
	for i := range req.Timeseries {
		var lb model.LabelsBuilder
		for _, l := range req.Timeseries[i].Labels {
			lb.Add([]byte(l.Name), []byte(l.Value))
		}
		l, err := lb.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		r := s.Rows["anonymous"+model.Labels(l).String()]
		want := math.Float64bits(req.Timeseries[i].Samples[0].Value)
		if r == nil || r.Len() != 2 || r.Values[0] != want || r.Values[1] != want || r.Times[1] != nowMs*1_000_000 {
			t.Fatalf("series %d: got %v", i, r)
		}
	}
}

func TestForm(t *testing.T) {
	good := encode(t, fleet(1))
	goodV2 := encodeV2(t, translate(fleet(1)))
	h, _ := newHandler(t, testLimits())
	for _, c := range []struct {
		body    []byte
		headers []string
		code    int
		text    string
	}{
		{good, nil, 204, ""},
		{good, []string{"Content-Type", "", "Content-Encoding", ""}, 204, ""},
		{good, []string{"Content-Type", "application/x-protobuf; proto=prometheus.WriteRequest", "Content-Encoding", "Snappy"}, 204, ""},
		{good, []string{"X-Prometheus-Remote-Write-Version", "2.0.0"}, 204, ""}, // the Content-Type decides
		{goodV2, []string{"Content-Type", typeV2}, 204, ""},
		{goodV2, []string{"Content-Type", "Application/X-Protobuf; Proto=\"io.prometheus.write.v2.Request\""}, 204, ""},
		{goodV2, nil, 400, "a remote write 2.0 message with the Content-Type of 1.0"},
		{good, []string{"Content-Type", typeV2}, 400, "a remote write 1.0 message with the Content-Type of 2.0"},
		{goodV2, []string{"Content-Type", "application/x-protobuf;proto=io.prometheus.write.v3.Request"}, 415, "write.v3.Request"},
		{good, []string{"Content-Type", "application/x-protobuf;proto="}, 415, "expected Content-Type"},
		{good, []string{"Content-Type", "application/json"}, 415, "application/json"},
		{good, []string{"Content-Type", ";;"}, 415, "expected Content-Type"},
		{good, []string{"Content-Encoding", "gzip"}, 415, "gzip"},
		{good, []string{"Content-Encoding", "snappy, snappy"}, 415, "snappy, snappy"},
		{good, []string{"Content-Encoding", "zstd"}, 400, "not a zstd frame"},
		{good, []string{"X-Scope-OrgID", "team-a"}, 204, ""},
		{good, []string{"X-Scope-OrgID", "a/b"}, 400, "tenant"},
		{good, []string{"X-Scope-OrgID", strings.Repeat("x", 151)}, 400, "150"},
	} {
		w := send(h, c.body, c.headers...)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%q: %d %s", c.headers, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 405 || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d %v", w.Code, w.Header())
	}
}

func TestTenantsAreApart(t *testing.T) {
	h, s := newHandler(t, testLimits())
	send(h, encode(t, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{series(sample(nowMs, 1), "__name__", "m")}}), "X-Scope-OrgID", "team-a")
	if s.Rows[`team-a{__name__="m"}`] == nil {
		t.Fatalf("stored %v", s.Rows)
	}
}

func TestLeftOutIsSaid(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := writetest.NewStore(seed)
	h := New(write.New(write.Options{Seed: seed, Head: s, Journal: s, Limits: testLimits(), Now: func() int64 { return nowMs * 1_000_000 }, Registerer: reg}), reg)
	good := series(sample(nowMs, 1), "__name__", "good", "a", "b")
	good.Histograms = []prompb.Histogram{
		{Schema: 77, Timestamp: nowMs}, {Schema: 78, Timestamp: nowMs}, prompb.FromIntHistogram(nowMs, latencies(1)),
	}
	good.Exemplars = []prompb.Exemplar{{Value: 1, Timestamp: nowMs}, {Value: 1}}
	w := send(h, encode(t, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
		good,
		series(sample(math.MaxInt64, 1), "__name__", "never"),
		series(sample(nowMs+3_600_000, 1), "__name__", "early"),
		series(sample(nowMs, 1), "job", "nameless"),
		series(sample(nowMs, 1), "__name__", "twice", "a", "1", "a", "2"),
		series(sample(nowMs, 1), "__name__", "bad\xff"),
		series(sample(nowMs, 1), "__name__", "long", "a", strings.Repeat("v", 5000)),
	}}))
	if w.Code != 400 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for _, line := range []string{
		"1 sample, 1 histogram, 2 exemplars stored, 6 samples, 2 histograms left out, which need not be sent again:\n",
		"2 invalid_histogram\n", `invalid_histogram: {"__name__"="good", "a"="b"}: at 1700000000000 ms: histogram has an invalid schema`,
		"1 time_out_of_range", "1 too_far_in_future", "invalid_labels", "no metric name", "1 duplicate_label_name", "1 label_value_too_long", "UTF-8",
	} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("missing %q in:\n%s", line, w.Body)
		}
	}
	if s.Rows[`anonymous{__name__="good", a="b"}`] == nil || len(s.Rows) != 1 {
		t.Errorf("stored %v", s.Rows)
	}
	if w.Body.Len() > 8000 {
		t.Errorf("an answer of %d bytes", w.Body.Len())
	}
	metrics := `
# HELP shale_promwrite_received_exemplars_total Exemplars received by remote write and durable.
# TYPE shale_promwrite_received_exemplars_total counter
shale_promwrite_received_exemplars_total 2
# HELP shale_promwrite_received_samples_total Float and histogram samples received by remote write and durable.
# TYPE shale_promwrite_received_samples_total counter
shale_promwrite_received_samples_total 2
# HELP shale_promwrite_requests_total Remote write requests, by version of remote write (1.0, 2.0) and status code of the response.
# TYPE shale_promwrite_requests_total counter
shale_promwrite_requests_total{code="400",version="1.0"} 1
# HELP shale_write_exemplars_total Exemplars acknowledged as durable.
# TYPE shale_write_exemplars_total counter
shale_write_exemplars_total 2
# HELP shale_write_samples_total Samples acknowledged as durable, by kind: float, histogram.
# TYPE shale_write_samples_total counter
shale_write_samples_total{kind="float"} 1
shale_write_samples_total{kind="histogram"} 1
# HELP shale_write_discarded_samples_total Samples received but not stored, by reason.
# TYPE shale_write_discarded_samples_total counter
shale_write_discarded_samples_total{reason="duplicate_label_name"} 1
shale_write_discarded_samples_total{reason="invalid_histogram"} 2
shale_write_discarded_samples_total{reason="invalid_labels"} 2
shale_write_discarded_samples_total{reason="label_value_too_long"} 1
shale_write_discarded_samples_total{reason="time_out_of_range"} 1
shale_write_discarded_samples_total{reason="too_far_in_future"} 1
`
	names := []string{}
	for line := range strings.SplitSeq(metrics, "\n") {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(metrics), names...); err != nil {
		t.Error(err)
	}
}

func TestTroubleOfTheStoreIsRetried(t *testing.T) {
	h, s := newHandler(t, testLimits())
	s.Err = fmt.Errorf("%w: disk full", model.ErrTransient)
	w := send(h, encode(t, fleet(1)))
	if n, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != 503 || err != nil || n < 1 || !strings.Contains(w.Body.String(), "disk full") {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	s.Err = nil
	if w := send(h, encode(t, fleet(1))); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		d       time.Duration
		attempt int
		want    time.Duration
	}{
		{5 * time.Second, 0, 5 * time.Second}, {2 * time.Second, 1, 4 * time.Second}, {2 * time.Second, 3, 16 * time.Second},
		{2 * time.Second, 4, 30 * time.Second}, {2 * time.Second, 1 << 40, 30 * time.Second}, {0, 1 << 40, 0},
	} {
		if got := backoff(c.d, c.attempt); got != c.want {
			t.Errorf("%v, %d: %v, want %v", c.d, c.attempt, got, c.want)
		}
	}
}

// TestManySendersAtOnce shares the pools between goroutines.
func TestManySendersAtOnce(t *testing.T) {
	h, s := newHandler(t, testLimits())
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				req := fleet(1 + (g+i)%50)
				if w := send(h, encode(t, req), "X-Scope-OrgID", fmt.Sprintf("t%d", g)); w.Code != 204 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
	wg.Wait()
	if len(s.Rows) == 0 {
		t.Fatal("nothing stored")
	}
}

// FuzzHandler sends whole bodies in all forms and expects no panic and a suitable response.
func FuzzHandler(f *testing.F) {
	f.Add(encode(f, fleet(2)), false, false)
	f.Add([]byte{}, false, true)
	f.Add(snappy.Encode(nil, []byte("\x0a\x02\x12\x00")), false, false)
	f.Add(binary.AppendUvarint(nil, 1<<32-1), true, false)
	f.Add(encodeV2(f, everything().done()), true, false)
	f.Add(pack(f, marshalV2(f, everything().done())), true, true)
	h, s := newHandler(f, testLimits())
	f.Fuzz(func(t *testing.T, body []byte, second, packed bool) {
		clear(s.Rows)
		clear(s.Exemplars)
		headers := []string{"Content-Type", "application/x-protobuf", "Content-Encoding", "snappy"}
		if second {
			headers[1] = typeV2
		}
		if packed {
			headers[3] = "zstd"
		}
		w := send(h, body, headers...)
		switch w.Code {
		case 204, 400, 413:
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if _, err := written(w); (err == nil) != second {
			t.Fatalf("headers %v", w.Header())
		}
	})
}
