package app

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/loki"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/changes"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/retention"
)

// answersWorld is an engine with the APIs over it, whose responses are kept.
type answersWorld struct {
	*setup
	http.Handler
	registry *prometheus.Registry
	random   *rand.Rand
	requests []*http.Request
	deleted  map[string][]string // requests of deletions by tenant
}

func newAnswersWorld(t *testing.T, seed uint64) *answersWorld {
	w := &answersWorld{random: rand.New(rand.NewPCG(seed, 7)), deleted: map[string][]string{}}
	w.setup = newSetup(t, func(o *EngineOptions) {
		var l retention.List
		if seed%3 == 1 {
			must(t, l.UnmarshalText([]byte(`[{tenant: b, match: '{job="j1"}', keep: 8h}]`)))
		}
		var err error
		o.Retention, err = retention.Compile(l, []time.Duration{0, 12 * time.Hour}[seed%2])
		must(t, err)
	})
	c := config.Default()
	c.MemoryBytes, c.Query.MaxBytes = 512<<20, 128<<20
	w.registry = prometheus.NewRegistry()
	log := slog.New(slog.DiscardHandler)
	shared := apiOptions(c, w.registry, log)
	shared.Now = func() time.Time { return time.Unix(0, w.now) }
	shared.Answers = keepAnswers(&c, w.Engine, w.registry)
	engine := newPromEngine(c, w.registry, log)
	mux := http.NewServeMux()
	prom.New(promOptions(c, w.Engine, engine, shared)).Routes(mux)
	lines := loki.New(lokiOptions(c, w.Engine, nil, shared, w.registry))
	lines.Routes(mux)
	w.Handler = mux
	t.Cleanup(func() {
		_ = engine.Close()
		_ = lines.Close()
		must(t, w.Engine.Close())
	})
	w.makeRequests()
	return w
}

// makeRequests makes requests that are sent again and again.
func (w *answersWorld) makeRequests() {
	seconds := func(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1e9, ns%1e9/1e6) }
	nanos := func(ns int64) string { return fmt.Sprint(ns) }
	add := func(path string, pairs ...string) {
		form := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			form.Add(pairs[i], pairs[i+1])
		}
		for _, tenant := range []string{"a", "b", "c"} {
			r := httptest.NewRequest(http.MethodGet, path+"?"+form.Encode(), nil)
			if w.random.IntN(4) == 0 {
				r = httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			r.Header.Set("X-Scope-OrgID", tenant)
			if strings.HasPrefix(path, "/loki") && w.random.IntN(4) == 0 {
				r.Header.Set("X-Scope-OrgID", "a|"+tenant)
			}
			if w.random.IntN(4) == 0 {
				r.Header.Set("X-Loki-Response-Encoding-Flags", "categorize-labels")
			}
			w.requests = append(w.requests, r)
		}
	}
	for range 4 {
		from := w.now - w.random.Int64N(int64(10*time.Hour))
		to := from + w.random.Int64N(int64(6*time.Hour))
		add("/api/v1/query", "query", `sum by (job) (m)`, "time", seconds(to))
		add("/api/v1/query", "query", `m offset 1h`, "time", seconds(to))
		add("/api/v1/query", "query", `m @ `+seconds(from), "time", seconds(to))
		add("/api/v1/query_range", "query", `rate(m[5m])`, "start", seconds(from), "end", seconds(to), "step", "300")
		add("/api/v1/query_range", "query", `absent(m{job="j1"})`, "start", seconds(from), "end", seconds(to), "step", "300")
		add("/api/v1/series", "match[]", `m`, "start", seconds(from), "end", seconds(to))
		add("/api/v1/labels", "start", seconds(from), "end", seconds(to))
		add("/api/v1/label/job/values", "start", seconds(from), "end", seconds(to))
		add("/api/v1/label/job/values")
		add("/loki/api/v1/query_range", "query", `{job=~".+"}`, "start", nanos(from), "end", nanos(to), "limit", "50")
		add("/loki/api/v1/query_range", "query", `sum by (job) (count_over_time({job=~".+"}[10m]))`, "start", nanos(from), "end", nanos(to), "step", "600")
		add("/loki/api/v1/query", "query", `sum(bytes_over_time({job="j1"}[1h]))`, "time", nanos(to))
		add("/loki/api/v1/labels", "start", nanos(from), "end", nanos(to))
		add("/loki/api/v1/label/job/values", "start", nanos(from), "end", nanos(to))
		add("/loki/api/v1/series", "match", `{job="j1"}`, "start", nanos(from), "end", nanos(to))
		add("/loki/api/v1/index/volume", "query", `{job=~".+"}`, "start", nanos(from), "end", nanos(to))
		add("/loki/api/v1/index/volume_range", "query", `{job=~".+"}`, "start", nanos(from), "end", nanos(to), "step", "30m")
		add("/loki/api/v1/detected_labels", "start", nanos(from), "end", nanos(to))
		add("/loki/api/v1/query_range", "query", `{job=`, "start", nanos(from), "end", nanos(to))
	}
}

// change does something to the store.
func (w *answersWorld) change(t *testing.T) (what string) {
	t.Helper()
	tenant := []string{"a", "b", "c"}[w.random.IntN(3)]
	job := fmt.Sprint("j", w.random.IntN(4))
	at := w.now - w.random.Int64N(int64(10*time.Hour))
	switch n := w.random.IntN(20); {
	case n < 8:
		must(t, w.push(tenant, model.LabelsOf("__name__", "m", "job", job, "i", fmt.Sprint(w.random.IntN(5))), at, w.random.Float64()))
		return "push"
	case n < 14:
		must(t, w.pushLines(tenant, model.LabelsOf("job", job), at, fmt.Sprint("line ", w.random.Uint64()), "another"))
		return "lines"
	case n == 14:
		d := deletion.Deletion{
			Tenant: tenant, Signal: model.Signal(1 + w.random.IntN(2)), Range: model.TimeRange{Min: at - int64(time.Hour), Max: at},
			Matchers:  []deletion.Matcher{{Name: "job", Op: model.MatchEqual, Value: job}},
			NotBefore: w.now + int64(24*time.Hour),
		}
		id, err := w.Delete(context.Background(), d)
		must(t, err)
		w.deleted[tenant] = append(w.deleted[tenant], id)
		return "delete"
	case n == 15:
		if ids := w.deleted[tenant]; len(ids) > 0 {
			// It may have been carried out, or be of the other signal.
			_ = w.CancelDeletion(context.Background(), tenant, ids[0], 0, true)
			w.deleted[tenant] = ids[1:]
		}
		return "cancel"
	case n == 16:
		must(t, w.Flush())
		return "flush"
	case n == 17:
		must(t, w.Ship())
		return "ship"
	case n == 18:
		must(t, w.Compact(context.Background()))
		return "compact"
	}
	w.now += w.random.Int64N(int64(20 * time.Minute))
	if w.random.IntN(8) == 0 {
		w.now += int64(4 * time.Hour) // idle series leave the head
	}
	return "clock"
}

// ask sends a request, with a copy of its body, and returns the response without its encoding.
func (w *answersWorld) ask(t *testing.T, r *http.Request, header ...string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	r = r.Clone(context.Background())
	if r.Body != nil && r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		must(t, err)
		for _, q := range w.requests {
			if q.Body == r.Body {
				q.Body = io.NopCloser(bytes.NewReader(body))
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	var from io.Reader = rec.Body
	var err error
	switch rec.Header().Get("Content-Encoding") {
	case "gzip":
		from, err = gzip.NewReader(rec.Body)
	case "zstd":
		from, err = zstd.NewReader(rec.Body, zstd.WithDecoderConcurrency(1))
	}
	must(t, err)
	body, err := io.ReadAll(from)
	must(t, err)
	return rec, withoutStatistics(string(body))
}

// withoutStatistics leaves out how long an evaluation took and what it read.
func withoutStatistics(body string) string {
	var all map[string]any
	if json.Unmarshal([]byte(body), &all) != nil {
		return body
	}
	if data, ok := all["data"].(map[string]any); ok {
		delete(data, "stats")
	}
	out, err := json.Marshal(all)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// TestAnswersAreExact: whatever happens to the store, a kept response is the one that is computed now.
func TestAnswersAreExact(t *testing.T) {
	t.Parallel()
	hits, steps := 0, 2000
	if testing.Short() {
		steps = 1000
	}
	const worlds = 4 / racetest.Fewer
	for seed := range uint64(worlds) {
		w := newAnswersWorld(t, seed)
		var last []string
		for range steps {
			if w.random.IntN(8) == 0 {
				last = append(last, w.change(t))
				continue
			}
			r := w.requests[w.random.IntN(len(w.requests))]
			encoding := []string{"", "gzip", "zstd", "gzip;q=0, br"}[w.random.IntN(4)]
			kept, got := w.ask(t, r, "Accept-Encoding", encoding)
			fresh, want := w.ask(t, r, "Accept-Encoding", encoding, "Cache-Control", "no-cache")
			if strings.HasPrefix(kept.Header().Get("Shale-Cost"), "tier=answer") {
				hits++
			}
			if strings.HasPrefix(fresh.Header().Get("Shale-Cost"), "tier=answer") {
				t.Fatal("no-cache got a kept response")
			}
			if got != want || kept.Code != fresh.Code || kept.Header().Get("Content-Type") != fresh.Header().Get("Content-Type") {
				t.Fatalf("seed %d, after %v: %s %s of %s: got %d %s (%v), want %d %s", seed, last[max(0, len(last)-10):],
					r.Method, r.URL, r.Header.Get("X-Scope-OrgID"), kept.Code, got, kept.Header(), fresh.Code, want)
			}
		}
	}
	if hits < worlds*steps/16 {
		t.Errorf("%d of %d responses were kept ones", hits, worlds*steps)
	}
	t.Logf("%d of %d responses were kept ones", hits, worlds*steps)
}

// TestEditsEndLists: labels may leave with the parts that held them.
func TestEditsEndLists(t *testing.T) {
	s := newSetup(t, nil)
	must(t, s.push("a", up, s.now, 1))
	at, lists := s.changes.Clock(), new(model.Reach)
	lists.AddLists(model.Metrics)
	for _, want := range []changes.Cause{changes.None, changes.Lists} {
		if got := s.changes.Changed(at, []string{"a"}, lists); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		must(t, s.Flush())
	}
	must(t, s.Close())
}
