package ingester

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/ingest"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/store/topics"
)

const (
	// countEvery is how often series are counted.
	countEvery = 10 * time.Second
	// repeatEvery is after how many counts one is sent again that has not changed.
	repeatEvery = 6
	// mostTenants, mostNames and mostBytes bound a record, the tenants in it, and all of it. Of a tenant that is
	// left out, or has no filter, gateways limit nothing.
	mostTenants = 10_000
	mostNames   = 512 << 10
	mostBytes   = 1<<20 - 1<<10
)

// Count tells gateways how many active series tenants have in the partitions of this process, until ctx ends.
// Of tenants near their limits, and of those whose rate of creation is limited, it says which these are.
func Count(ctx context.Context, owner *ingest.Owner, to *kafka.State, epoch *topics.Epoch, limits Limits, m *CountMetrics, log *slog.Logger) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	said, topic := map[int32][]byte{}, int64(0)
	unlisted := map[string]bool{} // which the log has named
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := to.Topics(); n%repeatEvery == 0 || now != topic { // it may not have been taken, or be lost
			clear(said)
			topic = now
		}
		now := map[string]bool{}
		owner.Each(func(number int32, p *ingest.Partition, s ingest.State, _ error) {
			// While not all its series could be read, gateways would take the others for new ones.
			if s != ingest.Ready || !p.Head().KnownRebuilt() {
				delete(said, number) // another process may count it meanwhile
				return
			}
			r, left := countOf(p, number, epoch, limits)
			for _, tenant := range left {
				now[tenant] = true
			}
			key, value := r.Encode()
			if !bytes.Equal(value, said[number]) {
				to.Put(key, value)
				said[number] = value
			}
		})
		m.unlisted.Set(float64(len(now)))
		for tenant := range now {
			if !unlisted[tenant] && len(unlisted) < mostTenants {
				log.Warn("gateways cannot apply the limits on series of a tenant: a partition has more of its series than a list has room for", "tenant", tenant, "most", mostListed)
			}
		}
		unlisted = now
	}
}

// mostListed is the largest number of series of a tenant in a partition that have a filter.
const mostListed = 131_072

// Limits returns the most active series of a tenant, 0 if there is no limit, and whether it may create series
// at a rate only.
type Limits func(tenant string) (most int64, rated bool)

// CountMetrics are those of Count.
type CountMetrics struct{ unlisted, unlistedMetrics prometheus.Gauge }

// NewCountMetrics registers the metrics of Count.
func NewCountMetrics(r prometheus.Registerer) *CountMetrics {
	f := promauto.With(r)
	return &CountMetrics{f.NewGauge(prometheus.GaugeOpts{
		Name: "shale_ingest_unlisted_tenants", Help: "Tenants whose limits on series gateways cannot apply, because a partition has more of their series than a list has room for.",
	}), f.NewGauge(prometheus.GaugeOpts{
		Name: "shale_ingest_unlisted_metrics", Help: "Metrics that are not reported to gateways for limits.metric-series, because the record of a partition would be too large.",
	})}
}

// countOf counts the series of a partition.
func countOf(p *ingest.Partition, number int32, epoch *topics.Epoch, limits Limits) (r *state.Series, unlisted []string) {
	h := p.Head()
	r, unlisted = record(h.ActiveByTenant(), state.Partition{Epoch: epoch.Number, Number: number}, epoch.Partitions, limits)
	add := make(map[string]func(uint64), len(r.Known))
	for tenant, f := range r.Known {
		add[tenant] = f.Add
	}
	h.EachActive(add)
	return r, unlisted
}

// record returns the record of a partition with empty filters. If not all has room, the tenants with most
// series are counted, and the smallest filters are there. The same series make the same record. unlisted are
// the tenants without a filter that should have one.
func record(active map[string]int64, p state.Partition, partitions int32, limits Limits) (r *state.Series, unlisted []string) {
	r = &state.Series{Partition: p, Active: map[string]int64{}, Known: map[string]state.Filter{}}
	tenants := slices.SortedFunc(maps.Keys(active), func(a, b string) int {
		return cmp.Or(cmp.Compare(active[b], active[a]), strings.Compare(a, b))
	})
	used := 0
	for i, tenant := range tenants {
		used += len(tenant) + len(`"":2147483647,`)
		if i == mostTenants || used > mostNames {
			r.More, tenants = true, tenants[:i]
			break
		}
		r.Active[tenant] = active[tenant]
	}
	for _, tenant := range slices.Backward(tenants) {
		n := active[tenant]
		// Keys are spread evenly, so that other partitions have about as many.
		if most, rated := limits(tenant); !rated && (most <= 0 || n*int64(partitions) <= most/2) {
			continue
		}
		f := state.NewFilter(2 * n)
		size := len(tenant) + len(`"":"",`) + base64.StdEncoding.EncodedLen(len(f))
		if f != nil && used+size <= mostBytes {
			r.Known[tenant] = f
			used += size
		} else {
			unlisted = append(unlisted, tenant)
		}
	}
	return r, unlisted
}
