package promwrite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	configutil "github.com/prometheus/common/config"
	promodel "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	prommetadata "github.com/prometheus/prometheus/model/metadata"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

// TestPrometheusClient sends with Prometheus's client and checks how it interprets the responses.
func TestPrometheusClient(t *testing.T) {
	h, s := newHandler(t, testLimits())
	server := httptest.NewServer(h)
	defer server.Close()
	address, err := url.Parse(server.URL + Path)
	if err != nil {
		t.Fatal(err)
	}
	client := func(message remoteapi.WriteMessageType) remote.WriteClient {
		c, err := remote.NewWriteClient("test", &remote.ClientConfig{
			URL: &configutil.URL{URL: address}, Timeout: promodel.Duration(30 * time.Second), WriteProtoMsg: message,
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	second, first := client(remoteapi.WriteV2MessageType), client(remoteapi.WriteV1MessageType)
	partial := everything()
	partial.series(func(ts *writev2.TimeSeries) {
		ts.Samples = []writev2.Sample{{Value: 1, Timestamp: nowMs}, {Value: 2, Timestamp: nowMs + 3_600_000}}
	}, "__name__", "partial")
	retried := func(err error) bool {
		var r remote.RecoverableError
		return errors.As(err, &r)
	}

	if rs, err := second.Store(t.Context(), encodeV2(t, everything().done()), 0); err != nil || !rs.Confirmed || rs.Samples != 2 || rs.Histograms != 2 || rs.Exemplars != 3 {
		t.Errorf("all stored: %+v, %v", rs, err)
	}
	if rs, err := second.Store(t.Context(), encodeV2(t, partial.done()), 0); err == nil || retried(err) || rs.Samples != 3 || rs.Histograms != 2 || rs.Exemplars != 3 || !strings.Contains(err.Error(), "too_far_in_future") {
		t.Errorf("some left out: %+v, %v", rs, err)
	}
	if rs, err := second.Store(t.Context(), []byte("x"), 0); err == nil || retried(err) || !rs.Confirmed || !rs.NoDataWritten() {
		t.Errorf("malformed: %+v, %v", rs, err)
	}
	if rs, err := first.Store(t.Context(), encode(t, fleet(10)), 0); err != nil || rs.Confirmed {
		t.Errorf("version 1: %+v, %v", rs, err)
	}
	s.Lock()
	s.Err = fmt.Errorf("%w: disk full", model.ErrTransient)
	s.Unlock()
	if rs, err := second.Store(t.Context(), encodeV2(t, everything().done()), 3); !retried(err) || !rs.Confirmed || !rs.NoDataWritten() {
		t.Errorf("full disk: %+v, %v", rs, err)
	}
	if _, err := first.Store(t.Context(), encode(t, fleet(10)), 0); !retried(err) {
		t.Errorf("full disk, version 1: %v", err)
	}
}

// sent is what a Prometheus is given to send.
type sent struct {
	floats  []uint64
	ints    []*histogram.Histogram
	fracts  []*histogram.FloatHistogram
	at      int64 // of the first row of each series, in milliseconds; the next ones follow
	exempla []exemplar.Exemplar
}

func whatToSend() *sent {
	custom := &histogram.Histogram{
		Schema: histogram.CustomBucketsSchema, Count: 3, Sum: 4, CustomValues: []float64{1, 2},
		PositiveSpans: []histogram.Span{{Length: 2}}, PositiveBuckets: []int64{1, 1},
	}
	gauge := latencies(7)
	gauge.CounterResetHint = histogram.GaugeType
	return &sent{
		floats: []uint64{math.Float64bits(1.5), 1 << 63, 0, 0x7ff8_0000_dead_beef, math.Float64bits(math.Inf(-1)), model.StaleNaN},
		ints:   []*histogram.Histogram{latencies(1), latencies(2), {Sum: math.Float64frombits(model.StaleNaN)}, custom, gauge},
		fracts: []*histogram.FloatHistogram{latencies(3).ToFloat(nil), {Sum: math.Float64frombits(model.StaleNaN)}},
		at:     time.Now().UnixMilli() + 1000, // a queue sends what is younger than itself
		exempla: []exemplar.Exemplar{
			{Labels: labels.FromStrings("trace_id", "a"), Value: 1, HasTs: true},
			{Labels: labels.FromStrings("span_id", "x", "trace_id", "b"), Value: 2, HasTs: true},
		},
	}
}

// append gives it to a database of Prometheus.
func (c *sent) append(t *testing.T, db *tsdb.DB) {
	t.Helper()
	app := db.AppenderV2(context.Background())
	add := func(name string, i int, start int64, v float64, h *histogram.Histogram, f *histogram.FloatHistogram, o storage.AOptions) {
		t.Helper()
		if _, err := app.Append(0, labels.FromStrings("__name__", name, "job", "test"), start, c.at+int64(i), v, h, f, o); err != nil {
			t.Fatal(name, i, err)
		}
	}
	for i, v := range c.floats {
		o := storage.AOptions{Metadata: prommetadata.Metadata{Type: promodel.MetricTypeCounter, Help: "Floats.", Unit: "s"}}
		if i == 0 {
			for j, x := range c.exempla {
				x.Ts = c.at + int64(j)
				o.Exemplars = append(o.Exemplars, x)
			}
		}
		add("floats", i, c.at-1000, math.Float64frombits(v), nil, nil, o)
	}
	for i, h := range c.ints {
		add(fmt.Sprint("ints_", i), i, 0, 0, h.Copy(), nil, storage.AOptions{Metadata: prommetadata.Metadata{Type: promodel.MetricTypeHistogram, Help: "Ints."}})
	}
	for i, f := range c.fracts {
		add("fractions", i, 0, 0, nil, f.Copy(), storage.AOptions{})
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
}

// arrived reports whether everything is stored, and fails if something is stored that was not sent.
func (c *sent) arrived(t *testing.T, s *writetest.Store, v version) bool {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	rows := func(name string) *model.Rows {
		if r := s.Rows[fmt.Sprintf(`anonymous{__name__="%s", job="test"}`, name)]; r != nil {
			r.Normalize() // a request that was refused is sent again
			return r
		}
		return &model.Rows{}
	}
	complete := true
	check := func(name string, at int, r *model.Rows, want []string) {
		complete = complete && r.Len() == len(want)
		for i := range min(r.Len(), len(want)) {
			got := fmt.Sprintf("%x", r.Values[i])
			if r.Kind(i) != model.KindFloat {
				got = fmt.Sprintf("%x", r.Blob(i))
			}
			if got != want[i] || r.Times[i] != (c.at+int64(at+i))*1_000_000 {
				t.Fatalf("%s, row %d: %s at %d, want %s at %d ms", name, i, got, r.Times[i], want[i], c.at+int64(at+i))
			}
		}
	}
	stored := func(h *histogram.Histogram, f *histogram.FloatHistogram) string {
		value, err := histogramValue(h, f)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	var floats, fractions []string
	for _, v := range c.floats {
		if v == 1<<63 {
			v = 0 // the encoder of Prometheus leaves out what equals zero, and with it the sign of -0
		}
		floats = append(floats, fmt.Sprintf("%x", v))
	}
	check("floats", 0, rows("floats"), floats)
	for i, h := range c.ints {
		name := fmt.Sprint("ints_", i)
		if v == v1 && h.UsesCustomBuckets() {
			continue // which Prometheus sends by 2.0 alone
		}
		check(name, i, rows(name), []string{stored(h.Copy(), nil)})
	}
	for _, f := range c.fracts {
		fractions = append(fractions, stored(nil, f.Copy()))
	}
	check("fractions", 0, rows("fractions"), fractions)
	if x := s.Exemplars[`anonymous{__name__="floats", job="test"}`]; x != nil {
		x.NormalizeSet()
		want := []string{}
		for _, e := range c.exempla {
			var pairs []string
			e.Labels.Range(func(l labels.Label) { pairs = append(pairs, l.Name, l.Value) })
			value, err := exemplarValue(e.Value, pairs)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, value)
		}
		check("exemplars", 0, x, want)
	} else {
		complete = false
	}
	if v == v2 && complete {
		if r := rows("floats"); r.Start(0) != (c.at-1000)*1_000_000 {
			t.Fatalf("floats start at %d", r.Start(0))
		}
		about := s.Metadata["anonymous floats"]
		complete = about == model.Metadata{Type: "counter", Help: "Floats.", Unit: "s"} && s.Metadata["anonymous ints_0"].Help == "Ints."
	}
	return complete
}

// TestPrometheusSends connects the whole sending half of a Prometheus to the handler: a database with
// its log, the watcher of the log, and the queue of remote write. Its first requests are refused, as
// with a full disk.
func TestPrometheusSends(t *testing.T) {
	for v, message := range map[version]remoteapi.WriteMessageType{v1: remoteapi.WriteV1MessageType, v2: remoteapi.WriteV2MessageType} {
		t.Run(v.String(), func(t *testing.T) {
			s := writetest.NewStore(seed)
			h := New(write.New(write.Options{Seed: seed, Head: s, Journal: s, Metadata: s, Limits: testLimits()}), nil)
			var refusals atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.Lock()
				if s.Err = nil; refusals.Add(1) <= 2 {
					s.Err = fmt.Errorf("%w: disk full", model.ErrTransient)
				}
				s.Unlock()
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, r)
				for name, values := range rec.Header() {
					w.Header()[name] = values
				}
				w.Header().Del("Retry-After") // 5 seconds are long for a test
				w.WriteHeader(rec.Code)
				_, _ = w.Write(rec.Body.Bytes())
			}))
			defer server.Close()
			dir := t.TempDir()
			options := tsdb.DefaultOptions()
			options.EnableExemplarStorage, options.MaxExemplars = true, 1000
			options.EnableMetadataWALRecords, options.EnableSTStorage, options.FloatChunkEncoding = true, true, chunkenc.EncXOR2
			db, err := tsdb.Open(dir, nil, nil, options, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			reg := prometheus.NewRegistry()
			sender := remote.NewStorage(nil, reg, func() (int64, error) { return 0, nil }, dir, time.Second, nil, false)
			defer func() { _ = sender.Close() }()
			db.SetWriteNotified(sender)
			address, err := url.Parse(server.URL + Path)
			if err != nil {
				t.Fatal(err)
			}
			c := config.DefaultRemoteWriteConfig
			c.URL, c.ProtobufMessage, c.SendExemplars, c.SendNativeHistograms = &configutil.URL{URL: address}, message, true, true
			c.QueueConfig.BatchSendDeadline, c.MetadataConfig.Send = promodel.Duration(50*time.Millisecond), false
			if err := sender.ApplyConfig(&config.Config{RemoteWriteConfigs: []*config.RemoteWriteConfig{&c}}); err != nil {
				t.Fatal(err)
			}
			data := whatToSend()
			data.append(t, db)
			for deadline := time.Now().Add(60 * time.Second); !data.arrived(t, s, v); time.Sleep(20 * time.Millisecond) {
				sender.Notify() // or the watcher looks every 15 s, if it was not there yet when the data came
				if time.Now().After(deadline) {
					t.Fatalf("after a minute and %d requests: %v, %v, %v", refusals.Load(), s.Rows, s.Exemplars, s.Metadata)
				}
			}
			failed(t, reg)
		})
	}
}

// failed looks for what the sender counts as failed.
func failed(t *testing.T, reg *prometheus.Registry) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "prometheus_remote_storage_") || !strings.HasSuffix(f.GetName(), "_failed_total") {
			continue
		}
		for _, m := range f.GetMetric() {
			if seen++; m.GetCounter().GetValue() != 0 {
				t.Errorf("%s %v", f.GetName(), m)
			}
		}
	}
	if seen == 0 {
		t.Error("no metric of failures")
	}
}
