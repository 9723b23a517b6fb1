package ledger

import "github.com/prometheus/client_golang/prometheus"

// collector makes metrics of the counts when they are asked for, so that a touch has to count in one place.
type collector struct{ l *Ledger }

var (
	firstTouches  = prometheus.NewDesc("shale_cache_first_touches_total", "Values that a tier was asked for, by the first touch of each query.", []string{"tier", "tenant"}, nil)
	firstHits     = prometheus.NewDesc("shale_cache_first_touch_hits_total", "Values that a tier had, by the first touch of each query.", []string{"tier", "tenant"}, nil)
	hitBytes      = prometheus.NewDesc("shale_cache_hit_bytes_total", "Bytes of values that a tier gave to queries, as they are in memory.", []string{"tier", "tenant"}, nil)
	tenantBytes   = prometheus.NewDesc("shale_cache_tenant_bytes", "Bytes that a tenant has in a tier.", []string{"tier", "tenant"}, nil)
	evictedBytes  = prometheus.NewDesc("shale_cache_evicted_bytes_total", "Bytes of values that were evicted from a tier to make room for others.", []string{"tier"}, nil)
	residenceDesc = prometheus.NewDesc("shale_cache_residence_seconds_total", "Total seconds that evicted values had spent in a tier.", []string{"tier"}, nil)
	residentDesc  = prometheus.NewDesc("shale_cache_residence_evictions_total", "Evictions whose time in the tier is part of shale_cache_residence_seconds_total.", []string{"tier"}, nil)
	readsDesc     = prometheus.NewDesc("shale_cache_reads_total", "Reads from the device or the server of a tier.", []string{"tier"}, nil)
	readSeconds   = prometheus.NewDesc("shale_cache_read_seconds_total", "Total seconds of reads from the device or the server of a tier.", []string{"tier"}, nil)
	dataAge       = prometheus.NewDesc("shale_cache_asked_age_seconds", "Age of the data of the values that queries asked for, by first touches.", nil, nil)
)

func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{firstTouches, firstHits, hitBytes, tenantBytes, evictedBytes, residenceDesc, residentDesc, readsDesc, readSeconds, dataAge} {
		to <- d
	}
}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	send := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	for i, s := range l.sums(nil) {
		name := l.tiers[i].name
		send(evictedBytes, float64(s.evictedBytes), name)
		send(residenceDesc, float64(s.residence)/1e9, name)
		send(residentDesc, float64(s.resident), name)
		send(readsDesc, float64(s.reads), name)
		send(readSeconds, float64(s.readSeconds)/1e9, name)
	}
	var states []State
	for _, t := range l.tiers {
		states = append(states, t.State())
	}
	for _, t := range l.tenants.list() {
		row, any := l.tenant(t, states)
		if !any {
			continue
		}
		for _, cell := range row.Tiers {
			send(firstTouches, float64(cell.First), cell.Name, row.Name)
			send(firstHits, float64(cell.FirstHits), cell.Name, row.Name)
			send(hitBytes, float64(cell.HitBytes), cell.Name, row.Name)
			to <- prometheus.MustNewConstMetric(tenantBytes, prometheus.GaugeValue, float64(cell.Bytes), cell.Name, row.Name)
		}
	}
	l.collectAges(to)
}

func (l *Ledger) collectAges(to chan<- prometheus.Metric) {
	buckets, all := make(map[float64]uint64, len(ages)), uint64(0)
	sums := l.sums(nil)
	for i := range len(ages) + 1 {
		for j, t := range l.tiers {
			if !t.aside {
				all += uint64(sums[j].ages[i].first)
			}
		}
		if i < len(ages) {
			buckets[float64(ages[i])] = all
		}
	}
	// The sum of all ages is not kept.
	to <- prometheus.MustNewConstHistogram(dataAge, all, 0, buckets)
}
