package otlp

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/writetest"
)

func TestLogsAllocateNothingPerRecord(t *testing.T) {
	alloctest.Counts(t)
	body, _ := manyLogs(t)
	h := idle().Logs()
	alloctest.AtMost(t, 60, 20, func() {
		if w := post(h, body, "Content-Type", "application/x-protobuf"); w.Code != http.StatusOK || w.Body.Len() > 0 {
			t.Fatal(w.Code, w.Body)
		}
	})
}

// manyLogs is a body of 2,000 records, and the bytes of their lines.
func manyLogs(tb testing.TB) (body []byte, size int) {
	ld := sampleLogs()
	records := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	for i := range 2000 {
		r := records.AppendEmpty()
		records.At(0).CopyTo(r)
		line := fmt.Sprintf("a line of about as many bytes as most lines have, number %d, with a level of info and some more text to it, which goes on", i)
		r.Body().SetStr(line)
		size += len(line)
	}
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	if err != nil {
		tb.Fatal(err)
	}
	return body, size
}

func BenchmarkLogs(b *testing.B) {
	body, size := manyLogs(b)
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

// idle returns a handler whose store discards everything.
func idle() *Handler { return newHandler(writetest.Known{}, write.Limits{MaxFuture: time.Hour}) }

func benchmark(b *testing.B, body []byte, size int, of func(h *Handler) http.Handler) {
	h := of(idle())
	b.SetBytes(int64(size))
	b.ReportAllocs()
	began := alloctest.CPU(b)
	for b.Loop() {
		if w := post(h, body, "Content-Type", "application/x-protobuf"); w.Code != http.StatusOK || w.Body.Len() > 0 {
			b.Fatal(w.Code, w.Body)
		}
	}
	b.ReportMetric(float64(alloctest.CPU(b)-began)/float64(b.N)/float64(size), "CPU-s/GB")
}
