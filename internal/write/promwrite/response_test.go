package promwrite

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/receive"
	"github.com/shaledb/shale/internal/write/writetest"
)

// written returns what a response says is stored. It fails unless all three headers are there.
func written(w *httptest.ResponseRecorder) (n write.Counts, err error) {
	for name, to := range map[string]*int{"Samples": &n.Samples, "Histograms": &n.Histograms, "Exemplars": &n.Exemplars} {
		if *to, err = strconv.Atoi(w.Header().Get("X-Prometheus-Remote-Write-" + name + "-Written")); err != nil {
			return n, err
		}
	}
	return n, nil
}

// TestReasonsAreInOrder: reasons that the receiver finds and reasons that the write path finds come in the
// order of the series.
func TestReasonsAreInOrder(t *testing.T) {
	h, _ := newHandler(t, testLimits())
	at := func(ms int64) []prompb.Sample { return []prompb.Sample{{Value: 1, Timestamp: ms}} }
	const tooNew, never = nowMs + 1_000_000_000, 1 << 60
	for _, c := range []struct {
		series []prompb.TimeSeries
		want   string
	}{
		{[]prompb.TimeSeries{series(at(tooNew), "__name__", "a"), series(at(never), "__name__", "b")}, "1 too_far_in_future\n1 time_out_of_range\n"},
		{[]prompb.TimeSeries{series(at(never), "__name__", "a"), series(at(tooNew), "__name__", "b")}, "1 time_out_of_range\n1 too_far_in_future\n"},
	} {
		if w := send(h, encode(t, &prompb.WriteRequest{Timeseries: c.series})); !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s, want %s", w.Body, c.want)
		}
	}
}

// TestWrittenIsTold: every version 2 response, whatever its status, tells exactly what is stored;
// version 1 responses do not.
func TestWrittenIsTold(t *testing.T) {
	all := func() *requestV2 { return everything() }
	partial := all()
	partial.series(func(ts *writev2.TimeSeries) {
		ts.Samples = []writev2.Sample{{Value: 1, Timestamp: nowMs + 3_600_000}, {Value: 1, Timestamp: nowMs}}
		ts.Histograms = []writev2.Histogram{{Schema: 99, Timestamp: nowMs}}
		ts.Exemplars = []writev2.Exemplar{{LabelsRefs: partial.refs("trace_id", strings.Repeat("x", 121)), Timestamp: nowMs}}
	}, "__name__", "partial")
	lost := newRequestV2()
	lost.series(func(ts *writev2.TimeSeries) {
		ts.Exemplars = []writev2.Exemplar{{LabelsRefs: lost.refs("trace_id", strings.Repeat("x", 121)), Timestamp: nowMs}}
	}, "__name__", "lost")
	everythingWritten := write.Counts{Samples: 2, Histograms: 2, Exemplars: 3}
	for what, c := range map[string]struct {
		body    []byte
		headers []string
		setUp   func(h *Handler, s *writetest.Store, p *write.Path)
		code    int
		written write.Counts
	}{
		"all stored":    {encodeV2(t, all().done()), nil, nil, 204, everythingWritten},
		"zstd":          {pack(t, marshalV2(t, all().done())), []string{"Content-Encoding", "zstd"}, nil, 204, everythingWritten},
		"some left out": {encodeV2(t, partial.done()), nil, nil, 400, write.Counts{Samples: 3, Histograms: 2, Exemplars: 3}},
		// Senders treat a 204 without a count as a failure without a reason.
		"only exemplars":     {encodeV2(t, lost.done()), nil, nil, 400, write.Counts{}},
		"nothing sent":       {snappy.Encode(nil, nil), nil, nil, 204, write.Counts{}},
		"malformed":          {snappy.Encode(nil, []byte("\x0f")), nil, nil, 400, write.Counts{}},
		"not snappy":         {[]byte("x"), nil, nil, 400, write.Counts{}},
		"bad tenant":         {encodeV2(t, all().done()), []string{"X-Scope-OrgID", "a/b"}, nil, 400, write.Counts{}},
		"unknown encoding":   {encodeV2(t, all().done()), []string{"Content-Encoding", "gzip"}, nil, 415, write.Counts{}},
		"too large":          {make([]byte, 2<<20), nil, nil, 413, write.Counts{}},
		"too large, decoded": {snappy.Encode(nil, make([]byte, 5<<20)), nil, nil, 413, write.Counts{}},
		"no room": {encodeV2(t, all().done()), nil, func(_ *Handler, _ *writetest.Store, p *write.Path) {
			if _, err := p.Admit(t.Context(), "other", 64<<20); err != nil {
				t.Fatal(err)
			}
		}, 503, write.Counts{}},
		"full disk": {encodeV2(t, partial.done()), nil, func(_ *Handler, s *writetest.Store, _ *write.Path) {
			s.Err = fmt.Errorf("%w: disk full", model.ErrTransient)
		}, 503, write.Counts{}},
		"stopping": {encodeV2(t, all().done()), nil, func(_ *Handler, _ *writetest.Store, p *write.Path) { p.Close() }, 503, write.Counts{}},
	} {
		s := writetest.NewStore(seed)
		path := newPath(s, testLimits())
		h := New(path, nil)
		if c.setUp != nil {
			c.setUp(h, s, path)
		}
		w := sendV2(h, c.body, c.headers...)
		if got, err := written(w); w.Code != c.code || err != nil || got != c.written {
			t.Errorf("%s: %d, written %+v, %v: %s", what, w.Code, got, err, w.Body)
		}
		if retry := w.Header().Get("Retry-After"); (retry != "") != (c.code == 503) {
			t.Errorf("%s: Retry-After %q", what, retry)
		}
	}
	h, _ := newHandler(t, testLimits())
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	r.Header.Set("Content-Type", typeV2)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if got, err := written(w); w.Code != 405 || err != nil || got.Total() != 0 {
		t.Errorf("GET: %d %v", w.Code, w.Header())
	}
	for _, body := range [][]byte{encode(t, fleet(1)), []byte("x")} {
		w := send(h, body)
		for name := range w.Header() {
			if strings.Contains(name, "Remote-Write") {
				t.Errorf("version 1: %d %v", w.Code, w.Header())
			}
		}
	}
}

// slow is a store that does not allow new series.
type slow struct{ *writetest.Store }

func (slow) Create(string, int) (int, error) {
	return 0, &model.LimitError{Limit: "limits.new-series", Text: "too many new series"}
}

func (slow) Await(context.Context, error) bool { return false }

// TestKnownSeriesAreStoredWhileNewOnesWait: the response asks for a retry and still tells what is
// stored.
func TestKnownSeriesAreStoredWhileNewOnesWait(t *testing.T) {
	s := writetest.NewStore(seed)
	if w := sendV2(New(newPath(s, testLimits()), nil), encodeV2(t, everything().done())); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	path := write.New(write.Options{Seed: seed, Head: slow{s}, Journal: s, Limits: testLimits(), Now: func() int64 { return nowMs * 1_000_000 }})
	more := everything()
	more.series(func(ts *writev2.TimeSeries) { ts.Samples = []writev2.Sample{{Value: 1, Timestamp: nowMs}} }, "__name__", "new")
	w := sendV2(New(path, nil), encodeV2(t, more.done()), "Retry-Attempt", "2")
	n, err := written(w)
	if seconds, _ := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != 503 || err != nil || n != (write.Counts{Samples: 2, Histograms: 2, Exemplars: 3}) || seconds < 20 {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if s.Rows[`anonymous{__name__="new"}`] != nil || s.Rows[`anonymous{__name__="requests_total", job="api"}`].Len() != 4 {
		t.Fatalf("stored %v", s.Rows)
	}
}

// TestExemplarsDoNotSpoilVersion1: a version 1 sender takes a 400 as the loss of all its samples.
func TestExemplarsDoNotSpoilVersion1(t *testing.T) {
	h, s := newHandler(t, testLimits())
	ts := series(sample(nowMs, 1), "__name__", "m")
	ts.Exemplars = []prompb.Exemplar{
		{Labels: []prompb.Label{{Name: "trace_id", Value: strings.Repeat("x", 121)}}, Timestamp: nowMs},
		{Labels: []prompb.Label{{Name: "trace_id", Value: "1"}}, Timestamp: nowMs},
		{Labels: []prompb.Label{{Name: "trace_id", Value: "1"}}, Timestamp: nowMs + 3_600_000},
	}
	if w := send(h, encode(t, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{ts}})); w.Code != 204 || w.Body.Len() > 0 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if n := s.Exemplars[`anonymous{__name__="m"}`].Len(); n != 1 {
		t.Fatalf("%d exemplars", n)
	}
}

// TestAnswersAreShort sends a request that breaks every rule.
func TestAnswersAreShort(t *testing.T) {
	h, _ := newHandler(t, testLimits())
	long := strings.Repeat("v", 3000)
	var all []prompb.TimeSeries
	for i := range 50 {
		for _, name := range []string{long, long + "\xff", strings.Repeat("v", 5000)} {
			ts := series([]prompb.Sample{{Timestamp: nowMs + 3_600_000}, {Timestamp: 1 << 62}}, "__name__", name, "i", fmt.Sprint(i), long[:999], long)
			ts.Histograms = []prompb.Histogram{{Schema: 99, Timestamp: nowMs}}
			all = append(all, ts, series(sample(nowMs, 1), "a", long, "a", long), series(sample(nowMs, 1), "__name__", "m", "a", long, "a", long))
		}
	}
	w := send(h, encode(t, &prompb.WriteRequest{Timeseries: all}))
	if w.Code != 400 || w.Body.Len() > receive.MaxTextBytes+1 || !strings.HasPrefix(w.Body.String(), "0 samples stored, 600 samples, 150 histograms left out") {
		t.Fatalf("%d, %d bytes: %.300s", w.Code, w.Body.Len(), w.Body)
	}
}
