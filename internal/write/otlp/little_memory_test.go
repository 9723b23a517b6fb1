package otlp

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/logs/logstest"
	"github.com/shaledb/shale/internal/write/writetest"
)

// TestRequestsThatFitAreNotRefused: a request that fits into the memory of requests is stored, though twice
// as many lines would not fit, and whatever is in its resource.
func TestRequestsThatFitAreNotRefused(t *testing.T) {
	resource := message(1, message(1, keyed("service.name", text("s"))))
	for what, body := range map[string][]byte{
		"records": message(1, concat(resource, message(2, bytes.Repeat(message(2, nil), 524_289)))),
		"a resource": message(1, concat(message(1, concat(message(1, keyed("service.name", text("s"))), message(1, keyed("long", text(strings.Repeat("x", 60_000)))),
			bytes.Repeat([]byte{0x10, 0x01}, 120_000))), message(2, message(2, nil)))),
	} {
		m := writetest.NewMeter()
		rules := logs.DefaultRules()
		rules.DetectLevels = false
		h := New(Options{Rules: rules, Sink: write.New(write.Options{
			Seed: logstest.Seed, Head: m, Journal: m, Registerer: m.Registry, Now: func() int64 { return now },
			Limits: write.Limits{MaxInflightBytes: 128 << 20 * 12 / 100, MaxFuture: time.Hour},
		})})
		if w := post(h.Logs(), body, "Content-Type", "application/x-protobuf"); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
}
