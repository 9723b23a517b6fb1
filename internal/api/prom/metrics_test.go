package prom_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// mustGauge returns one metric without labels as it is now.
func mustGauge(t testing.TB, w *world, name string) prometheus.Collector {
	t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name})
			g.Set(f.GetMetric()[0].GetGauge().GetValue())
			return g
		}
	}
	t.Fatalf("no metric %s", name)
	return nil
}

func TestMetrics(t *testing.T) {
	w := newWorld(t, nil)
	w.Get("/api/v1/query?query=1")
	w.Get("/api/v1/query?query=1")
	w.Get("/api/v1/query?query=")
	w.Get("/api/v1/label/a/values")
	w.Get("/api/v1/label/b/values")
	w.Get("/api/v1/x")
	w.Get("/api/v1/y")
	want := `
# HELP shale_api_prom_requests_total Requests to the Prometheus API, by handler and HTTP status.
# TYPE shale_api_prom_requests_total counter
shale_api_prom_requests_total{code="200",handler="label_values"} 2
shale_api_prom_requests_total{code="200",handler="query"} 2
shale_api_prom_requests_total{code="400",handler="query"} 1
shale_api_prom_requests_total{code="404",handler="unknown"} 2
`
	if err := testutil.GatherAndCompare(w.reg, strings.NewReader(want), "shale_api_prom_requests_total"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(w.reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(w.reg, "shale_api_prom_request_seconds"); err != nil || n != 3 {
		t.Errorf("%d histograms: %v", n, err)
	}
}
