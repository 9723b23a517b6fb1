package otlp

import (
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs/logstest"
)

// fuzzed sends a body to a handler. Whatever the body is, there is a response, and what is stored is
// well formed, which the store checks.
func fuzzed(t *testing.T, take func() []string, h http.Handler, body []byte, metrics bool) {
	take()
	w := post(h, body, "Content-Type", "application/x-protobuf")
	switch w.Code {
	case http.StatusOK, http.StatusBadRequest, http.StatusRequestEntityTooLarge:
	default:
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if metrics || w.Code != http.StatusOK || w.Body.Len() > 0 {
		return
	}
	// The library finds the same number of records.
	req := plogotlp.NewExportRequest()
	if rows := take(); req.UnmarshalProto(body) == nil && req.Logs().LogRecordCount() != len(rows) {
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
	s := &logstest.Store{}
	h := newHandler(s, write.Limits{MaxFuture: time.Hour, MaxInflightBytes: 64 << 20}).Logs()
	f.Fuzz(func(t *testing.T, body []byte) { fuzzed(t, s.Take, h, body, false) })
}

func FuzzMetrics(f *testing.F) {
	all, err := pmetricotlp.NewExportRequestFromMetrics(sampleMetrics()).MarshalProto()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(all)
	f.Add([]byte{})
	f.Add(message(1, message(2, message(2, message(10, message(1, message(8, []byte{0x12, 2, 1, 1})))))))
	s := &metricStore{}
	h := newHandler(s, write.Limits{MaxFuture: time.Hour, MaxInflightBytes: 64 << 20}).Metrics()
	f.Fuzz(func(t *testing.T, body []byte) { fuzzed(t, s.take, h, body, true) })
}
