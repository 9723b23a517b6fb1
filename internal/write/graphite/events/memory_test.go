package events

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/writetest"
)

// TestMemoryIsReserved: a request has reserved what it holds, whatever is in its body.
func TestMemoryIsReserved(t *testing.T) {
	alloctest.Counts(t)
	var members strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&members, `"%d":0,`, i)
	}
	for name, body := range map[string]string{
		"members":    `{` + members.String() + `"what":"x"}`,
		"empty tags": `{"what":"x","tags":[` + strings.Repeat(`"",`, 500_000) + `""]}`,
		"tags":       `{"what":"x","tags":[` + strings.Repeat(`"a",`, 30_000) + `"a"]}`,
		"blanks":     `{"what":"x","tags":"` + strings.Repeat("a ", 60_000) + `"}`,
		"escapes":    `{"what":"x","data":"` + strings.Repeat(`\u2028`, 30_000) + `"}`,
		"a value":    `{"what":"x","data":[` + strings.Repeat(`[],`, 50_000) + `[]]}`,
	} {
		m := writetest.NewMeter()
		h := New(Options{Rules: logs.DefaultRules(), Sink: write.New(write.Options{
			Head: m, Journal: m, Registerer: m.Registry, Now: func() int64 { return 1_700_000_000e9 },
			Limits: write.Limits{MaxInflightBytes: 1 << 30, MaxFuture: time.Hour},
		})})
		use := m.Of(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/events", strings.NewReader(body)))
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		})
		use.Check(t, name, writetest.Garbage)
	}
}
