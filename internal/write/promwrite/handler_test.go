package promwrite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	if len(s.rows) != 300 {
		t.Fatalf("%d series", len(s.rows))
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
		r := s.rows["anonymous"+model.Labels(l).String()]
		want := math.Float64bits(req.Timeseries[i].Samples[0].Value)
		if r == nil || r.Len() != 2 || r.Values[0] != want || r.Values[1] != want || r.Times[1] != nowMs*1_000_000 {
			t.Fatalf("series %d: got %v", i, r)
		}
	}
}

func TestForm(t *testing.T) {
	good := encode(t, fleet(1))
	h, _ := newHandler(t, testLimits())
	for _, c := range []struct {
		headers []string
		code    int
		text    string
	}{
		{nil, 204, ""},
		{[]string{"Content-Type", "", "Content-Encoding", ""}, 204, ""},
		{[]string{"Content-Type", "application/x-protobuf; proto=prometheus.WriteRequest", "Content-Encoding", "Snappy"}, 204, ""},
		{[]string{"Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request"}, 415, "supported is remote write 1.0"},
		{[]string{"Content-Type", "application/json"}, 415, "application/json"},
		{[]string{"Content-Type", ";;"}, 415, "supported"},
		{[]string{"Content-Encoding", "zstd"}, 415, "zstd"},
		{[]string{"X-Scope-OrgID", "team-a"}, 204, ""},
		{[]string{"X-Scope-OrgID", "a/b"}, 400, "tenant"},
		{[]string{"X-Scope-OrgID", strings.Repeat("x", 151)}, 400, "150"},
	} {
		w := send(h, good, c.headers...)
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
	if s.rows[`team-a{__name__="m"}`] == nil {
		t.Fatalf("stored %v", s.rows)
	}
}

func TestHostileBodies(t *testing.T) {
	h, s := newHandler(t, testLimits())
	bomb := binary.AppendUvarint(nil, 1<<40)
	for what, c := range map[string]struct {
		body []byte
		code int
		text string
	}{
		"empty":               {nil, 400, "snappy"},
		"not snappy":          {[]byte("hello, world"), 400, "snappy"},
		"declares 1 TiB":      {bomb, 400, "snappy"}, // more than a block can have
		"declares 4 GiB - 1":  {binary.AppendUvarint(nil, 1<<32-1), 413, "limits.decoded-bytes"},
		"declares 5 MiB":      {binary.AppendUvarint(nil, 5<<20), 413, "limits.decoded-bytes"},
		"declares too little": {append(binary.AppendUvarint(nil, 3), snappy.Encode(nil, []byte("hello, world"))[1:]...), 400, "snappy"},
		"cut off":             {encode(t, fleet(20))[:2000], 400, "snappy"},
		"not protobuf":        {snappy.Encode(nil, []byte("hello, world")), 400, "at byte 3 of the decoded"},
		"too large":           {make([]byte, 1<<20+1), 413, "limits.body-bytes"},
		"no series":           {snappy.Encode(nil, nil), 204, ""},
	} {
		w := send(h, c.body)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	if len(s.rows) != 0 {
		t.Errorf("stored %v", s.rows)
	}
}

// TestUnknownLength sends bodies in chunks, whose bytes are admitted as they come.
func TestUnknownLength(t *testing.T) {
	h, s := newHandler(t, testLimits())
	post := func(body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, Path, body)
		r.ContentLength = -1
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := post(bytes.NewReader(encode(t, fleet(3000)))); w.Code != 204 || len(s.rows) != 3000 {
		t.Fatalf("%d %s, %d series", w.Code, w.Body, len(s.rows))
	}
	if w := post(io.LimitReader(zeros{}, 2<<20)); w.Code != 413 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := post(io.MultiReader(strings.NewReader("x"), broken{})); w.Code != 400 || !strings.Contains(w.Body.String(), "after 1 bytes") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// TestAdmissionComesBeforeReading fills the budget and offers a body that fails the test when it is read.
func TestAdmissionComesBeforeReading(t *testing.T) {
	limits := testLimits()
	limits.MaxInflightBytes = 1 << 20
	s := newStore()
	path := s.path(limits)
	h := New(path, nil)
	held, err := path.Admit(t.Context(), "other", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, Path, io.NopCloser(unread{t}))
	r.ContentLength = 1000
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	seconds, err := strconv.Atoi(w.Header().Get("Retry-After"))
	if w.Code != 503 || err != nil || seconds < 1 || !strings.Contains(w.Body.String(), "limits.inflight-bytes") {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	held.Release()
	if w := send(h, encode(t, fleet(10))); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if _, err := path.Admit(t.Context(), "other", 1<<20); err != nil {
		t.Fatalf("the request kept a part of the budget: %v", err)
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// TestColumnsAreAdmitted sends samples of two bytes each, whose columns take eight times the body.
func TestColumnsAreAdmitted(t *testing.T) {
	limits := testLimits()
	limits.MaxInflightBytes = 3 << 20
	h, _ := newHandler(t, limits)
	ts := "\x0a\x0d\x0a\x08__name__\x12\x01m" + strings.Repeat("\x12\x00", 900_000)
	raw := append([]byte{0x0a}, binary.AppendUvarint(nil, uint64(len(ts)))...)
	raw = append(raw, ts...)
	w := send(h, snappy.Encode(nil, raw))
	if w.Code != 413 && w.Code != 503 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

func TestLeftOutIsSaid(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := newStore()
	h := New(write.New(write.Options{Seed: seed, Head: s, Journal: s, Limits: testLimits(), Now: func() int64 { return nowMs * 1_000_000 }, Registerer: reg}), reg)
	good := series(sample(nowMs, 1), "__name__", "good", "a", "b")
	good.Histograms = []prompb.Histogram{{Schema: 1, Timestamp: nowMs}, {Schema: 1, Timestamp: nowMs}}
	good.Exemplars = []prompb.Exemplar{{Value: 1}}
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
		"1 samples are stored, 8 are left out", "2 unsupported_kind", `{"__name__"="good", "a"="b"}: native histograms`,
		"1 time_out_of_range", "1 too_far_in_future", "invalid_labels", "no metric name", "1 duplicate_label_name", "1 label_value_too_long", "UTF-8",
	} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("missing %q in:\n%s", line, w.Body)
		}
	}
	if s.rows[`anonymous{__name__="good", a="b"}`] == nil || len(s.rows) != 1 {
		t.Errorf("stored %v", s.rows)
	}
	if w.Body.Len() > 8000 {
		t.Errorf("an answer of %d bytes", w.Body.Len())
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP shale_promwrite_ignored_exemplars_total Exemplars received by remote write, which are not stored.
# TYPE shale_promwrite_ignored_exemplars_total counter
shale_promwrite_ignored_exemplars_total 1
# HELP shale_promwrite_received_samples_total Samples received by remote write that are durable.
# TYPE shale_promwrite_received_samples_total counter
shale_promwrite_received_samples_total 1
# HELP shale_promwrite_requests_total Remote write requests, by the status of their answer.
# TYPE shale_promwrite_requests_total counter
shale_promwrite_requests_total{code="400"} 1
`), "shale_promwrite_ignored_exemplars_total", "shale_promwrite_received_samples_total", "shale_promwrite_requests_total"); err != nil {
		t.Error(err)
	}
}

func TestTroubleOfTheStoreIsRetried(t *testing.T) {
	h, s := newHandler(t, testLimits())
	s.fail = fmt.Errorf("%w: disk full", model.ErrTransient)
	w := send(h, encode(t, fleet(1)))
	if n, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != 503 || err != nil || n < 1 || !strings.Contains(w.Body.String(), "disk full") {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	s.fail = nil
	if w := send(h, encode(t, fleet(1))); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

func TestRetrySeconds(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		dice float64
		want int
	}{{time.Millisecond, 0, 1}, {time.Second, 0.99, 1}, {5 * time.Second, 0, 5}, {5 * time.Second, 0.99, 7}, {1500 * time.Millisecond, 0, 2}} {
		if got := retrySeconds(c.d, c.dice); got != c.want {
			t.Errorf("%v, %v: %d, want %d", c.d, c.dice, got, c.want)
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
	if len(s.rows) == 0 {
		t.Fatal("nothing stored")
	}
}

func TestHugeBuffersAreNotPooled(t *testing.T) {
	p := newPools()
	big := p.takeBuffer()
	big.resize(maxPooled + 1)
	p.giveBuffer(big)
	for range 4 {
		if b := p.takeBuffer(); cap(b.bytes) > maxPooled {
			t.Fatal("a huge buffer came back")
		}
	}
}

// FuzzHandler offers whole bodies: no panic, and an answer that fits.
func FuzzHandler(f *testing.F) {
	f.Add(encode(f, fleet(2)))
	f.Add([]byte{})
	f.Add(snappy.Encode(nil, []byte("\x0a\x02\x12\x00")))
	f.Add(binary.AppendUvarint(nil, 1<<32-1))
	f.Fuzz(func(t *testing.T, body []byte) {
		h, _ := newHandler(t, testLimits())
		switch w := send(h, body); w.Code {
		case 204, 400, 413:
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
}
