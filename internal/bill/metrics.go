package bill

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The settings that refuse queries.
const (
	settingQueryRequests  = "query.max-bucket-requests"
	settingQueryBytes     = "query.max-bucket-bytes"
	settingTenantRequests = "query.tenant-bucket-requests"
	settingTenantBytes    = "query.tenant-bucket-bytes"
	settingAllRequests    = "query.all-bucket-requests"
	settingAllBytes       = "query.all-bucket-bytes"
)

// maxShownTenants bounds the tenants that have series of their own. The others share one.
const (
	maxShownTenants = 100
	otherTenants    = "(other)"
)

type metrics struct {
	refused                  *prometheus.CounterVec // by setting
	requests, bytes, dollars *prometheus.CounterVec // by tenant
	shown                    map[string]spending    // guarded by Budgets.mu
}

// spending are the counters of a tenant.
type spending struct{ requests, bytes, dollars prometheus.Counter }

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	m := &metrics{
		refused: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_bill_refused_queries_total", Help: "Queries that a budget for reading from the bucket refused or ended, by the setting of the budget."}, []string{"limit"}),
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_bill_requests_total", Help: "Requests to the bucket for the queries of a tenant; beyond 100 tenants, further ones count as (other)."}, []string{"tenant"}),
		bytes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_bill_bytes_total", Help: "Bytes read from the bucket for the queries of a tenant; beyond 100 tenants, further ones count as (other)."}, []string{"tenant"}),
		dollars: f.NewCounterVec(prometheus.CounterOpts{
			Name: "shale_bill_dollars_total", Help: "Dollars spent on the bucket for the queries of a tenant, by the price settings; beyond 100 tenants, further ones count as (other)."}, []string{"tenant"}),
		shown: make(map[string]spending),
	}
	for _, setting := range []string{settingQueryRequests, settingQueryBytes, settingTenantRequests, settingTenantBytes, settingAllRequests, settingAllBytes} {
		m.refused.WithLabelValues(setting)
	}
	return m
}

// spend counts what the queries of a tenant spend. The caller holds the lock of the budgets.
func (m *metrics) spend(tenant string, requests, bytes int64, dollars Dollars) {
	s, ok := m.shown[tenant]
	if !ok && len(m.shown) >= maxShownTenants {
		tenant = otherTenants
		s, ok = m.shown[tenant]
	}
	if !ok {
		s = spending{m.requests.WithLabelValues(tenant), m.bytes.WithLabelValues(tenant), m.dollars.WithLabelValues(tenant)}
		m.shown[tenant] = s
	}
	s.requests.Add(float64(requests))
	s.bytes.Add(float64(bytes))
	s.dollars.Add(float64(dollars))
}
