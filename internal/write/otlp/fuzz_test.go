package otlp

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
)

// fuzzed gives a body to a handler: whatever it is, there is an answer, and what is stored is well formed, which the store
// checks.
func fuzzed(t *testing.T, s *store, h http.Handler, body []byte, metrics bool) {
	s.take()
	w := post(h, body, "Content-Type", "application/x-protobuf")
	switch w.Code {
	case http.StatusOK, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
	default:
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if metrics || w.Code != http.StatusOK || w.Body.Len() > 0 {
		return
	}
	// The library reads as many records.
	req := plogotlp.NewExportRequest()
	if rows := s.take(); req.UnmarshalProto(body) == nil && req.Logs().LogRecordCount() != len(rows) {
		t.Errorf("%d records came to %d lines", req.Logs().LogRecordCount(), len(rows))
	}
}

func FuzzLogs(f *testing.F) {
	all, err := plogotlp.NewExportRequestFromLogs(sampleLogs()).MarshalProto()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(all)
	f.Add([]byte{})
	f.Add(message(1, message(2, message(2, message(5, message(6, message(1, nil)))))))
	s := &store{}
	h := newHandler(s, write.Limits{MaxFuture: time.Hour, MaxInflightBytes: 64 << 20}).Logs()
	f.Fuzz(func(t *testing.T, body []byte) { fuzzed(t, s, h, body, false) })
}

func FuzzMetrics(f *testing.F) {
	all, err := pmetricotlp.NewExportRequestFromMetrics(sampleMetrics()).MarshalProto()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(all)
	f.Add([]byte{})
	f.Add(message(1, message(2, message(2, message(10, message(1, message(8, []byte{0x12, 2, 1, 1})))))))
	s := &store{}
	h := newHandler(s, write.Limits{MaxFuture: time.Hour, MaxInflightBytes: 64 << 20}).Metrics()
	f.Fuzz(func(t *testing.T, body []byte) { fuzzed(t, s, h, body, true) })
}

func BenchmarkLogs(b *testing.B) {
	ld := sampleLogs()
	records := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	size := 0
	for i := range 2000 {
		r := records.AppendEmpty()
		records.At(0).CopyTo(r)
		line := fmt.Sprintf("a line of about as many bytes as most lines have, number %d, with a level of info and some more text to it, which goes on", i)
		r.Body().SetStr(line)
		size += len(line)
	}
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, body, size, func(h *Handler) http.Handler { return h.Logs() })
}

func BenchmarkMetrics(b *testing.B) {
	md := sampleMetrics()
	points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	for i := range 2000 {
		p := points.AppendEmpty()
		points.At(0).CopyTo(p)
		p.Attributes().PutInt("n", int64(i))
	}
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Name() == "" || m.Name() == "delta.sum" })
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, body, len(body), func(h *Handler) http.Handler { return h.Metrics() })
}

// known is a head that knows every series, and a journal that stores nothing.
type known struct{}

func (known) Resolve(_ *model.Batch, dst []uint32) ([]uint32, error) { return dst, nil }
func (known) Append(context.Context, *model.Batch) error             { return nil }

func benchmark(b *testing.B, body []byte, size int, of func(h *Handler) http.Handler) {
	p := write.New(write.Options{Seed: 9, Head: known{}, Journal: known{}, Now: func() int64 { return now }, Limits: write.Limits{MaxFuture: time.Hour}})
	h := of(New(Options{Sink: p, Rules: logs.DefaultRules()}))
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if w := post(h, body, "Content-Type", "application/x-protobuf"); w.Code != http.StatusOK || w.Body.Len() > 0 {
			b.Fatal(w.Code, w.Body)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "CPU-s/GB")
}
