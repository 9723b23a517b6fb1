package lokipush

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/golang/snappy"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/logs/logstest"
	"github.com/shaledb/shale/internal/write/writetest"
)

// TestLinesThatFitAreNotRefused: a request whose lines fit into the memory of requests is stored, though
// twice as many would not fit.
func TestLinesThatFitAreNotRefused(t *testing.T) {
	m := writetest.NewMeter()
	rules := logs.DefaultRules()
	rules.DetectLevels = false
	h := New(Options{Rules: rules, Sink: write.New(write.Options{
		Seed: logstest.Seed, Head: m, Journal: m, Registerer: m.Registry, Now: func() int64 { return now },
		Limits: write.Limits{MaxInflightBytes: 128 << 20 * 12 / 100, MaxFuture: time.Hour},
	})})
	lines := bytes.Repeat(message1(nil, 2, nil), 524_289)
	body := snappy.Encode(nil, message1(nil, 1, append(message1(nil, 1, []byte(`{a="b"}`)), lines...)))
	if w := logstest.Post(h, Path, body, "Content-Type", "application/x-protobuf"); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
