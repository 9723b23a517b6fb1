package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/graphite"
)

// taken is a topic that takes everything.
type taken struct {
	g    *Gateway
	rows map[model.Key]int
}

func (j *taken) Append(_ context.Context, b *model.Batch) error {
	for i, k := range b.Keys {
		j.rows[k] += int(b.Samples.End(i) - b.Samples.Begin(i))
	}
	var keys []model.Key
	for _, i := range b.Labels.Series {
		keys = append(keys, b.Keys[i])
	}
	j.g.announcer.Announced(j.g.announcer.Moment(), b.Tenant, b.Signal, keys)
	return nil
}

// TestMixedRequests: while the brake refuses creation, a request with known series and few new ones is taken
// as a whole, so that its sender goes on. One with many new ones is refused with 503 until the sender has
// sent it so often that all of its series were created. Its known series are stored the first time.
func TestMixedRequests(t *testing.T) {
	g := braked(t)
	j := &taken{g: g, rows: map[model.Key]int{}}
	path := write.New(write.Options{
		Head: g.announcer, Journal: &chargedLog{j, g.series}, Groups: g.series, Room: func() error { return g.brake.refused(refuseAll) },
		Limits: write.Limits{MaxInflightBytes: 64 << 20, MaxBodyBytes: 1 << 20, MaxDecodedBytes: 4 << 20, MaxLabels: 64, MaxNameBytes: 1024, MaxValueBytes: 4096, MaxFuture: time.Hour},
	})
	h := graphite.NewHTTP(path, nil, nil)
	send := func(known, from, to int) *httptest.ResponseRecorder {
		t.Helper()
		var body strings.Builder
		now := time.Now().Unix()
		for i := range known {
			fmt.Fprintf(&body, "known.m%d 1 %d\n", i, now)
		}
		for i := from; i < to; i++ {
			fmt.Fprintf(&body, "new.m%d 1 %d\n", i, now)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, graphite.HTTPPath, strings.NewReader(body.String())))
		return w
	}
	const known, burst = 5, 600
	if w := send(known, 0, 0); w.Code != http.StatusNoContent {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	g.brake.use.Store(&kafka.Use{Share: 0.8, Setting: "retention.ms", Value: "1"})
	if w := send(known, 0, 10); w.Code != http.StatusNoContent {
		t.Errorf("few new series: status %d: %s", w.Code, w.Body)
	}
	w := send(known, 10, 10+burst+100)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "creates only 10 series of a tenant per second") {
		t.Errorf("many new series: status %d: %s", w.Code, w.Body)
	}
	if n := len(j.rows); n < known+burst || n >= known+10+burst+100 {
		t.Errorf("%d series are stored", n)
	}
	tries := 0
	for ; w.Code != http.StatusNoContent && tries < 50; tries++ {
		for _, t := range g.series.trickle.tenants {
			t.at = t.at.Add(-5 * time.Second)
		}
		w = send(known, 10, 10+burst+100)
	}
	if len(j.rows) != known+10+burst+100 || tries > 5 {
		t.Errorf("after %d more tries: status %d, %d series", tries, w.Code, len(j.rows))
	}
	g.brake.use.Store(&kafka.Use{Share: 0.9, Setting: "retention.ms", Value: "1"})
	if w := send(known, 0, 0); w.Code != http.StatusServiceUnavailable {
		t.Errorf("at nine tenths: status %d", w.Code)
	}
}
