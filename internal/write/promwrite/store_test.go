package promwrite

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

const seed model.KeySeed = 0x5ca1ab1e

// now is the clock of all tests: the time of their samples.
const nowMs = 1_700_000_000_000

// store is the head and the journal behind a write path: it keeps rows by tenant and labels.
type store struct {
	mu     sync.Mutex
	labels map[model.Key]model.Labels
	rows   map[string]*model.Rows
	fail   error
}

func newStore() *store {
	return &store{labels: map[model.Key]model.Labels{}, rows: map[string]*model.Rows{}}
}

func (s *store) Resolve(b *model.Batch, dst []uint32) ([]uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, k := range b.Keys {
		if _, ok := s.labels[k]; !ok {
			dst = append(dst, uint32(i))
		}
	}
	return dst, nil
}

func (s *store) Append(_ context.Context, b *model.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	for i := range b.Labels.Len() {
		l := b.Labels.At(i)
		if err := l.Check(); err != nil {
			return err
		}
		k := b.Keys[b.Labels.Series[i]]
		if want := l.Key(seed, b.Signal); k != want {
			return fmt.Errorf("labels %s have key %s, want %s", l, k, want)
		}
		s.labels[k] = append(model.Labels(nil), l...)
	}
	for i, k := range b.Keys {
		l, ok := s.labels[k]
		if !ok {
			return fmt.Errorf("key %s has no labels", k)
		}
		id := b.Tenant + l.String()
		if s.rows[id] == nil {
			s.rows[id] = &model.Rows{}
		}
		s.rows[id].AppendRows(&b.Samples.Rows, int(b.Samples.Begin(i)), int(b.Samples.End(i)))
	}
	return nil
}

func (s *store) path(limits write.Limits) *write.Path {
	return write.New(write.Options{Seed: seed, Head: s, Journal: s, Limits: limits, Now: func() int64 { return nowMs * 1_000_000 }})
}

func testLimits() write.Limits {
	return write.Limits{MaxInflightBytes: 64 << 20, MaxBodyBytes: 1 << 20, MaxDecodedBytes: 4 << 20, MaxLabels: 64,
		MaxNameBytes: 1024, MaxValueBytes: 4096, MaxFuture: 10 * time.Minute}
}

func newHandler(t testing.TB, limits write.Limits) (*Handler, *store) {
	t.Helper()
	s := newStore()
	return New(s.path(limits), nil), s
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
