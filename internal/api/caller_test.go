package api

import (
	"net/http"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

func TestClassOf(t *testing.T) {
	for _, c := range []struct {
		needs  Needs
		header http.Header
		want   model.Class
	}{
		{Form, http.Header{}, model.Explore},
		{Form, http.Header{"X-Dashboard-Uid": {"abc"}}, model.Dashboard},
		{Form, http.Header{"X-Dashboard-Uid": {"abc"}, "Fromalert": {"true"}}, model.Rule},
		{Form, http.Header{"X-Rule-Uid": {"abc"}}, model.Rule},
		{Form, http.Header{"Fromalert": {"false"}}, model.Explore},
		{Content, http.Header{"X-Rule-Uid": {"abc"}}, model.Scan},
	} {
		if got := classOf(&Endpoint{Needs: c.needs}, c.header); got != c.want {
			t.Errorf("%v: %s, want %s", c.header, got, c.want)
		}
	}
}

// A query has the least limits of its tenants.
func TestLimitsOfTenants(t *testing.T) {
	limits := map[string]*Limits{
		"a": {Timeout: 5, MaxSeries: 10, MaxSamples: 0, MaxBytes: 7},
		"b": {Timeout: 9, MaxSeries: 3, MaxSamples: 100, MaxBytes: 0},
	}
	o := &Options{LimitsOf: func(tenant string) *Limits { return limits[tenant] }}
	for _, x := range []struct {
		tenants []string
		want    Limits
	}{
		{[]string{"a"}, *limits["a"]},
		{[]string{"b"}, *limits["b"]},
		{[]string{"a", "b"}, Limits{Timeout: 5, MaxSeries: 3, MaxSamples: 100, MaxBytes: 7}},
	} {
		c := &call{Pipeline: &Pipeline{o: o}, r: &Request{Tenants: x.tenants, Quota: &model.Quota{MaxSeries: 1}}}
		c.limit()
		if got := (Limits{Timeout: c.timeout, MaxSeries: c.r.Quota.MaxSeries, MaxSamples: c.r.Quota.MaxSamples, MaxBytes: c.r.Quota.MaxBytes}); got != x.want {
			t.Errorf("%v: %+v, want %+v", x.tenants, got, x.want)
		}
	}
}
