package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/loki"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/logtest"
)

// damageQuery is a request to one of the two APIs.
type damageQuery struct {
	tenant, path string
	params       url.Values
}

func (q damageQuery) String() string { return q.path + "?" + q.params.Encode() }

// damageAnswer is a response: its result without statistics and warnings, and its warnings or error.
type damageAnswer struct {
	status int
	result string
	said   string
}

// damageQueries returns 50 queries of both signals about a time between two times.
func damageQueries(from, to int64) (all []damageQuery) {
	at := func(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1e9, ns%1e9/1e6) }
	middle := (from + to) / 2
	add := func(path string, params ...string) {
		q := damageQuery{path: path, params: url.Values{}}
		if len(all)%7 == 6 {
			q.tenant = "other"
		}
		for i := 0; i < len(params); i += 2 {
			q.params.Add(params[i], params[i+1])
		}
		all = append(all, q)
	}
	for _, expr := range []string{
		`requests_total{code="200"}[37h]`, `count_over_time({__name__=~".+"}[37h])`, `sum by (code) (rate(requests_total[1h]))`, `temperature`,
		`latency[37h]`, `topk(3, avg_over_time(temperature[37h]))`, `count(last_over_time(build_info[37h]))`, `{__name__=~"build_info|temperature", room!="r1"}`, `sum(increase(requests_total[3h])) by (instance)`,
	} {
		add("/api/v1/query", "query", expr, "time", at(to))
	}
	for _, expr := range []string{
		`sum(rate(requests_total[40m]))`, `histogram_quantile(0.9, sum(rate(latency[1h])))`, `temperature{room=~"r[2-5]"}`, `max_over_time(temperature[2h])`,
		`requests_total - requests_total offset 1h`, `count by (version) (build_info)`, `absent(requests_total{instance="i0"})`, `sum(histogram_count(latency))`, `quantile(0.5, temperature) > 25`,
	} {
		add("/api/v1/query_range", "query", expr, "start", at(from), "end", at(to), "step", "1800")
	}
	add("/api/v1/query_range", "query", "temperature", "start", at(middle), "end", at(middle+36e11), "step", "60")
	for _, match := range []string{"requests_total", `{__name__=~".+"}`, `{version=~"v.*"}`} {
		add("/api/v1/series", "match[]", match, "start", at(from), "end", at(to))
	}
	add("/api/v1/labels", "start", at(from), "end", at(to))
	add("/api/v1/labels", "match[]", "temperature", "start", at(from), "end", at(to))
	for _, name := range []string{"__name__", "room", "version", "instance"} {
		add("/api/v1/label/"+name+"/values", "start", at(from), "end", at(to))
	}
	add("/api/v1/query_exemplars", "query", "requests_total", "start", at(from), "end", at(to))
	add("/api/v1/metadata")
	add("/api/v1/metadata", "metric", "family_3")
	for _, query := range []string{
		`{app=~".+"}`, `{app="shop"} |= "request"`, `{app="auth"} | json | status >= 400`, `{app="shop"} | logfmt | took > 500ms`, `{pod="p1"} != "payment 1"`,
		`{app="db"} | json id="user.id" | line_format "{{.id}}"`, `{app=~"shop|db"} |~ "path=/api/1[0-9]"`, `{app="auth"} | regexp "payment (?P<code>[0-9a-f]+)"`,
		`{pod=~"p[0-3]"} | json | level="info" | keep level`, `{app="db", pod="p2"}`, `{app=~"auth|db"} | json | logfmt | status=400 or level="error" | drop text`, `{app="shop"} |= "level=error" | pattern "level=<l> msg=<_>"`,
	} {
		add("/loki/api/v1/query_range", "query", query, "start", fmt.Sprint(from), "end", fmt.Sprint(to), "limit", "5000", "direction", []string{"forward", "backward"}[len(all)%2])
	}
	add("/loki/api/v1/query_range", "query", `{app="shop"}`, "start", fmt.Sprint(middle), "end", fmt.Sprint(middle+36e11), "limit", "100")
	add("/loki/api/v1/query_range", "query", `{app=~".+"}`, "start", fmt.Sprint(to-36e11), "end", fmt.Sprint(to), "limit", "1000")
	add("/loki/api/v1/labels", "start", fmt.Sprint(from), "end", fmt.Sprint(to))
	add("/loki/api/v1/label/pod/values", "start", fmt.Sprint(from), "end", fmt.Sprint(to))
	add("/loki/api/v1/label/app/values", "start", fmt.Sprint(from), "end", fmt.Sprint(to))
	add("/loki/api/v1/series", "match[]", `{app=~".+"}`, "start", fmt.Sprint(from), "end", fmt.Sprint(to))
	add("/loki/api/v1/series", "match[]", `{pod="p4"}`, "start", fmt.Sprint(middle), "end", fmt.Sprint(to))
	return all
}

// ask puts all queries to the APIs of an engine, as the server mounts them.
func (w *damageWorld) ask(e *Engine, log *damageLog) []damageAnswer {
	c := config.Default()
	c.MemoryBytes, c.Query.MaxBytes, c.Retention = 256<<20, 64<<20, 0
	registry := prometheus.NewRegistry()
	shared := apiOptions(c, registry, log.logger())
	engine := newPromEngine(c, registry, log.logger())
	defer engine.Close()
	mux := http.NewServeMux()
	prom.New(promOptions(c, e, engine, shared)).Routes(mux)
	lines := loki.New(lokiOptions(c, e, nil, shared, registry))
	defer lines.Close()
	lines.Routes(mux)
	answers := make([]damageAnswer, len(w.queries))
	for i, q := range w.queries {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, q.path+"?"+q.params.Encode(), nil)
		if q.tenant != "" {
			r.Header.Set("X-Scope-OrgID", q.tenant)
		}
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, r)
		answers[i] = readAnswer(rec)
	}
	return answers
}

// readAnswer takes out of a response what may differ between two equal results.
func readAnswer(rec *httptest.ResponseRecorder) damageAnswer {
	a := damageAnswer{status: rec.Code}
	var body map[string]any
	dec := json.NewDecoder(bytes.NewReader(rec.Body.Bytes()))
	dec.UseNumber()
	if err := dec.Decode(&body); err != nil || rec.Code != http.StatusOK {
		a.said = rec.Body.String()
		return a
	}
	for _, name := range []string{"warnings", "infos"} {
		if list, ok := body[name].([]any); ok && name == "warnings" {
			a.said = fmt.Sprint(list...)
		}
		delete(body, name)
	}
	if data, ok := body["data"].(map[string]any); ok {
		delete(data, "stats")
		if result, ok := data["result"].([]any); ok {
			sortJSON(result) // results have no order
		}
	}
	if data, ok := body["data"].([]any); ok {
		sortJSON(data)
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	a.result = string(text)
	return a
}

func sortJSON(list []any) {
	slices.SortStableFunc(list, func(a, b any) int {
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		return bytes.Compare(x, y)
	})
}

// damageLog keeps what a server says at the levels warning and error.
type damageLog struct{ logtest.Buffer }

func (l *damageLog) logger() *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
