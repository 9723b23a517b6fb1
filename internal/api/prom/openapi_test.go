package prom

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// document is the part of the OpenAPI document that the tests read.
type document struct {
	Servers []struct{ URL string }
	Paths   map[string]map[string]any
}

func served(t *testing.T, h http.Handler) document {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", prefix+"openapi.yaml", nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/yaml; charset=utf-8" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	var d document
	if err := yaml.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Servers) != 1 || d.Servers[0].URL+"/" != prefix {
		t.Fatalf("servers are %v", d.Servers)
	}
	return d
}

// url returns where a path of the document is served.
func (d document) url(path string) string {
	if _, ok := d.Paths[path]["servers"]; ok {
		return path
	}
	return strings.TrimSuffix(prefix, "/") + path
}

// nothing is a store without series.
type nothing struct{}

func (nothing) Querier(int64, int64) (storage.Querier, error) { return storage.NoopQuerier(), nil }

func newTestHandler() *Handler {
	return New(Options{
		Options:   api.Options{Registerer: prometheus.NewRegistry()},
		Queryable: func(string, *model.Quota, *model.Cost) storage.Queryable { return nothing{} },
		Engine:    promql.NewEngine(promql.EngineOpts{MaxSamples: 1, Timeout: time.Second, Parser: parser.NewParser(parser.Options{})}),
	})
}

// The document names every path that is served, and no other.
func TestOpenAPIIsComplete(t *testing.T) {
	h := newTestHandler()
	mux := http.NewServeMux()
	h.Routes(mux)
	d := served(t, mux)
	// The receivers of package write are mounted by package app.
	endpoints := map[string]bool{prefix + "write": true, prefix + "otlp/v1/metrics": true}
	for _, e := range slices.Concat(h.endpoints(), h.plainEndpoints(), h.cardinalityEndpoints()) {
		if e.Name != "unknown" {
			endpoints[e.Pattern] = true
		}
	}
	for path := range d.Paths {
		if !endpoints[d.url(path)] {
			t.Errorf("the document names %s, which is not served", path)
		}
		delete(endpoints, d.url(path))
	}
	for pattern := range endpoints {
		t.Errorf("the document does not name %s", pattern)
	}
}

// Every path takes the methods of the document, and of the usual ones no other.
func TestOpenAPIMethods(t *testing.T) {
	mux := http.NewServeMux()
	newTestHandler().Routes(mux)
	d := served(t, mux)
	for path, item := range d.Paths {
		target := strings.ReplaceAll(d.url(path), "{name}", "job")
		if target == prefix+"write" || target == prefix+"otlp/v1/metrics" {
			continue
		}
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH"} {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequest(method, target, nil))
			_, named := item[strings.ToLower(method)]
			if taken := w.Code != http.StatusMethodNotAllowed && w.Code != http.StatusNotFound; taken != named {
				t.Errorf("%s %s: %d, and the document says %t", method, target, w.Code, named)
			}
		}
	}
}

// Every parameter of an operation is described.
func TestOpenAPIParameters(t *testing.T) {
	known := parameters()
	used := map[string]bool{}
	for _, o := range operations() {
		for name := range strings.FieldsSeq(o.params) {
			name = strings.TrimSuffix(name, "!")
			used[name] = true
			if _, ok := known[name]; !ok {
				t.Errorf("%s: the parameter %s is not described", o.path, name)
			}
		}
	}
	for name := range known {
		if !used[name] {
			t.Errorf("no operation has the parameter %s", name)
		}
	}
}
