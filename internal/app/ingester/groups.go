package ingester

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/ingest"
	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/topics"
	"github.com/shaledb/shale/internal/write/groups"
)

// groupsEvery is how often series are counted by metrics and label sets. That takes the labels of all active
// series of tenants with such limits.
const groupsEvery = time.Minute

// Groups are the limits of a tenant on the series of metrics and label sets.
type Groups func(tenant string) *groups.Limits

// Active emits the labels of the active series of a tenant in a partition, which are not kept.
type Active func(ctx context.Context, p *ingest.Partition, tenant string, s model.Signal, emit func(model.Labels)) error

// CountGroups tells gateways how many active series the metrics and label sets of tenants have in the
// partitions of this process, until ctx ends. Only tenants with limits on these are counted.
func CountGroups(ctx context.Context, owner *ingest.Owner, to *kafka.State, epoch *topics.Epoch, limits Groups, active Active, m *CountMetrics, log *slog.Logger) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	type said struct {
		value []byte
		at    time.Time
	}
	of := map[int32]said{}
	topic, failing := int64(0), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := to.Topics(); now != topic {
			clear(of)
			topic = now
		}
		var all []int32
		partitions := map[int32]*ingest.Partition{}
		owner.Each(func(number int32, p *ingest.Partition, s ingest.State, _ error) {
			if s == ingest.Ready && time.Since(of[number].at) >= groupsEvery {
				all, partitions[number] = append(all, number), p
			}
		})
		var err error
		left := 0
		for _, number := range all {
			r, without, failed := groupsOf(ctx, partitions[number], state.Partition{Epoch: epoch.Number, Number: number}, epoch.Partitions, limits, active)
			if failed != nil { // its known series are being found
				err = failed
				continue
			}
			if !holds(owner, number, partitions[number]) { // it was let go meanwhile, and not all was counted
				continue
			}
			left += without
			key, value := r.Encode()
			before := of[number]
			// Repeated, since Kafka may not have taken it, and gateways drop what is old.
			if len(r.Tenants) > 0 || len(before.value) > 0 && !bytes.Equal(before.value, value) {
				to.Put(key, value)
			}
			of[number] = said{value, time.Now()}
		}
		if len(all) > 0 {
			m.unlistedMetrics.Set(float64(left))
		}
		if err != nil && ctx.Err() == nil && !failing {
			log.Warn("cannot count series by metrics and label sets; trying again", "err", err)
		}
		failing = err != nil
	}
}

// holds reports whether a partition is still ready.
func holds(owner *ingest.Owner, number int32, p *ingest.Partition) (ready bool) {
	owner.Each(func(other int32, now *ingest.Partition, s ingest.State, _ error) {
		ready = ready || other == number && now == p && s == ingest.Ready
	})
	return ready
}

// groupsOf counts the series of a partition. left are the metrics that have no room in the record.
func groupsOf(ctx context.Context, p *ingest.Partition, at state.Partition, partitions int32, limits Groups, active Active) (_ *state.Groups, left int, err error) {
	counted := map[string]*groups.Numbers{}
	of := map[string]*groups.Limits{}
	for tenant := range p.Head().ActiveByTenant() {
		l := limits(tenant)
		if l.None() {
			continue
		}
		n := l.NewNumbers()
		for _, s := range []model.Signal{model.Metrics, model.Logs} {
			if err := active(ctx, p, tenant, s, func(series model.Labels) { l.Add(n, s, series) }); err != nil {
				return nil, 0, err
			}
		}
		of[tenant], counted[tenant] = l, n
	}
	r, left := groupsRecord(counted, of, at, partitions)
	return r, left, nil
}

// groupsRecord returns the record of a partition: the label sets, and the metrics that may have a quarter of
// what they may have. Keys are spread evenly, so that other partitions have about as many. Those with most
// series come first if not all have room.
func groupsRecord(counted map[string]*groups.Numbers, limits map[string]*groups.Limits, at state.Partition, partitions int32) (r *state.Groups, left int) {
	r = &state.Groups{Partition: at, Tenants: map[string]state.TenantGroups{}}
	type metric struct {
		tenant, name string
		n            int64
	}
	var metrics []metric
	used := 0
	for _, tenant := range slices.Sorted(maps.Keys(counted)) {
		l, n := limits[tenant], counted[tenant]
		// As JSON, a name may take six bytes for each of its own.
		size := 6*len(tenant) + 16*len(n.Sets) + len(`"":{"metrics":{},"sets":[],"text":"1234567890123"},`)
		if len(r.Tenants) == mostTenants || used+size > mostNames {
			left += len(n.Metrics) + len(n.Sets)
			continue
		}
		used += size
		r.Tenants[tenant] = state.TenantGroups{Metrics: map[string]int64{}, Sets: n.Sets, Text: l.Sets.Text()}
		for name, series := range n.Metrics {
			if 4*series*int64(partitions) > l.Metric {
				metrics = append(metrics, metric{tenant, name, series})
			}
		}
	}
	slices.SortFunc(metrics, func(a, b metric) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.tenant, b.tenant), strings.Compare(a.name, b.name))
	})
	for i, x := range metrics {
		if used += len(`"":2147483647,`) + len(x.name); used > mostBytes {
			return r, left + len(metrics) - i
		}
		r.Tenants[x.tenant].Metrics[x.name] = x.n
	}
	return r, left
}
