package usage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// maxShown bounds the tenants that have metrics of their own: those that cost most today.
const maxShown = 100

type metrics struct {
	saved                            prometheus.Gauge
	series, stored, queries, dollars *prometheus.GaugeVec // by tenant
	accounts                         prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	vec := func(name, help string, labels []string) *prometheus.GaugeVec {
		return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		saved:    f.NewGauge(prometheus.GaugeOpts{Name: "shale_usage_save_success", Help: "1 if the usage of tenants was last saved without an error; while it is 0, a restart loses what came since."}),
		accounts: f.NewGauge(prometheus.GaugeOpts{Name: "shale_usage_accounts", Help: "Tenants that have an account of their own today; all others share one."}),
		series:   vec("shale_usage_series", "Highest number of active series of a tenant today, updated every minute; the 100 tenants that cost most have metrics, and the others count as (other).", []string{"tenant"}),
		stored:   vec("shale_usage_stored_bytes", "Bytes of a tenant in the bucket, updated every minute; the 100 tenants that cost most have metrics, and the others count as (other).", []string{"tenant"}),
		queries:  vec("shale_usage_queries", "Read requests of a tenant today, updated every minute; the 100 tenants that cost most have metrics, and the others count as (other).", []string{"tenant"}),
		dollars:  vec("shale_usage_dollars", "Dollars that a tenant is charged for today by the price settings, updated every minute; the 100 tenants that cost most have metrics, and the others count as (other).", []string{"tenant"}),
	}
	m.saved.Set(1)
	return m
}

// show sets the metrics.
func (m *metrics) show(all map[string]Usage, cost func(Usage) float64) {
	type row struct {
		name string
		cost float64
		Usage
	}
	rows := make([]row, 0, len(all))
	other := row{name: Others}
	add := func(r row) {
		other.cost += r.cost
		other.Series += r.Series
		other.StoredBytes += r.StoredBytes
		other.Queries += r.Queries
	}
	accounts := len(all)
	for name, u := range all {
		r := row{name, cost(u), u}
		switch name {
		case others:
			accounts--
			add(r)
		case Others: // a tenant of this name has no label of its own
			add(r)
		default:
			rows = append(rows, r)
		}
	}
	m.accounts.Set(float64(accounts))
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(b.cost, a.cost), strings.Compare(a.name, b.name)) })
	for _, r := range rows[min(maxShown, len(rows)):] {
		add(r)
	}
	for _, v := range []*prometheus.GaugeVec{m.series, m.stored, m.queries, m.dollars} {
		v.Reset()
	}
	for _, r := range append(rows[:min(maxShown, len(rows)):min(maxShown, len(rows))], other) {
		m.series.WithLabelValues(r.name).Set(float64(r.Series))
		m.stored.WithLabelValues(r.name).Set(float64(r.StoredBytes))
		m.queries.WithLabelValues(r.name).Set(float64(r.Queries))
		m.dollars.WithLabelValues(r.name).Set(r.cost)
	}
}
