package app

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/admin"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/usage"
)

// TestUsage: what tenants write, store and read is in the report, and still there after a restart.
func TestUsage(t *testing.T) {
	s := newSetup(t, func(o *EngineOptions) {
		o.Registerer = prometheus.NewRegistry()
		o.Prices = usage.Prices{Samples: 1e6}
	})
	defer func() { must(t, s.Close()) }()
	for i := range 9 {
		must(t, s.push("a", model.LabelsOf("__name__", "m", "i", string(rune('a'+i))), s.now, 1))
	}
	must(t, s.push("b", up, s.now, 1))
	must(t, s.Ship()) // one block of both
	serve := func() (query http.Handler) {
		c := config.Default()
		shared := api.Options{Meter: readMeter{s.usage}, Registerer: prometheus.NewRegistry()}
		engine := newPromEngine(c, prometheus.NewRegistry(), nil)
		t.Cleanup(func() { _ = engine.Close() })
		mux := http.NewServeMux()
		prom.New(promOptions(c, s.Engine, engine, shared)).Routes(mux)
		return mux
	}
	query := serve()
	for _, tenant := range []string{"a", "a", "stranger"} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/series?match[]=m", nil)
		r.Header.Set(model.TenantHeader, tenant)
		w := httptest.NewRecorder()
		if query.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatal(w.Body)
		}
	}
	s.usage.Save(context.Background())
	check := func(when string) {
		t.Helper()
		r, err := s.usage.Report(context.Background(), nil)
		must(t, err)
		if len(r.Tenants) != 3 {
			t.Fatalf("%s: %+v", when, r)
		}
		a, b, other := &r.Tenants[0], &r.Tenants[1], &r.Tenants[2]
		if a.Tenant != "a" || a.Samples != 9 || a.Series != 9 || a.Queries != 2 || a.Dollars != 9 || a.PagesCached+a.PagesBucket == 0 {
			t.Errorf("%s: %+v", when, a)
		}
		all := int64(0)
		for _, block := range s.catalog.Live() {
			all += block.Bytes
		}
		if b.Tenant != "b" || b.Samples != 1 || b.StoredBytes == 0 || b.StoredBytes >= a.StoredBytes || a.StoredBytes+b.StoredBytes > all || all-a.StoredBytes-b.StoredBytes > 9 {
			t.Errorf("%s: %+v, %+v, %d bytes in the bucket", when, a, b, all)
		}
		if other.Tenant != usage.Others || other.Queries != 1 {
			t.Errorf("%s: %+v", when, other)
		}
	}
	check("before a restart")
	must(t, s.Engine.Close())
	s.o.Registerer = prometheus.NewRegistry()
	var err error
	s.Engine, err = OpenEngine(context.Background(), s.o)
	must(t, err)
	check("after a restart")

	var open atomic.Pointer[Engine]
	mux := http.NewServeMux()
	admin.New(admin.Options{Gatherer: prometheus.NewRegistry(), Usage: usageOf(&open)}).Routes(mux)
	get := func(form url.Values) (int, string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/usage?"+form.Encode(), nil))
		return w.Code, w.Body.String()
	}
	if code, text := get(nil); code != http.StatusServiceUnavailable {
		t.Errorf("before the store is open: %d %s", code, text)
	}
	open.Store(s.Engine)
	day := time.Unix(0, s.now).UTC().Format(time.DateOnly)
	for _, test := range []struct {
		form url.Values
		code int
		want string
	}{
		{nil, http.StatusOK, `"tenant": "a"`},
		{url.Values{"tenant": {"b"}, "from": {day}}, http.StatusOK, `"samples": 1,`},
		{url.Values{"format": {"csv"}, "tenant": {"a"}}, http.StatusOK, "\na,9,0,0,0,0,2,"},
		{url.Values{"format": {"xml"}}, http.StatusBadRequest, "format: expected json or csv"},
		{url.Values{"from": {"now"}}, http.StatusBadRequest, `from: invalid`},
	} {
		if code, text := get(test.form); code != test.code || !strings.Contains(text, test.want) {
			t.Errorf("%v: %d %s", test.form, code, text)
		}
	}
	if _, _, err := (usageReport{s.usage}).Report(context.Background(), url.Values{"to": {"x"}}); err == nil {
		t.Error("a wrong day is accepted")
	}
	var b bytes.Buffer
	_, csv, err := usageReport{s.usage}.Report(context.Background(), nil)
	must(t, err)
	if must(t, csv(&b)); !strings.HasPrefix(b.String(), "tenant,samples,") {
		t.Error(b.String())
	}
}
