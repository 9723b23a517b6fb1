package cardinality

import (
	"context"
	"time"

	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/sketch"
)

// Status counts the series of a tenant in the label store of the head: the active ones, and those with
// samples that are not in the bucket yet.
func (c *Counter) Status(ctx context.Context, tenant string, limit int, q *model.Quota, cost *model.Cost) (prom.TSDBStatus, error) {
	if c.Recent == nil {
		return prom.TSDBStatus{}, c.NoHead
	}
	times := c.Recent.TimeRange(model.Metrics, tenant)
	req := &model.Request{Tenant: tenant, Signal: model.Metrics, Range: model.Always(), LabelsCharged: true, Quota: q, Cost: cost}
	n, err := read.CountLabels(ctx, c.Recent, req, "")
	if err != nil {
		return prom.TSDBStatus{}, err
	}
	defer n.Release()
	stats := prom.HeadStats{NumSeries: n.Series, NumLabelPairs: int(n.Pairs()), MinTime: prom.NoMinTime, MaxTime: prom.NoMaxTime}
	if times.Min <= times.Max {
		stats.MinTime, stats.MaxTime = time.Unix(0, times.Min).UnixMilli(), time.Unix(0, times.Max).UnixMilli()
	}
	labels := func(key func(*read.LabelCount) uint64) (list []sketch.Counted) {
		for _, l := range n.Labels(limit, key) {
			list = append(list, sketch.Counted{Name: l.Name, Count: key(&l)})
		}
		return list
	}
	lines := func(list []sketch.Counted) []prom.TSDBStat {
		out := make([]prom.TSDBStat, 0, len(list))
		for _, x := range list {
			out = append(out, prom.TSDBStat{Name: x.Name, Value: x.Count})
		}
		return out
	}
	return prom.TSDBStatus{
		HeadStats:                   stats,
		SeriesCountByMetricName:     lines(n.SeriesByValue(model.NameLabel, limit)),
		LabelValueCountByLabelName:  lines(labels(mostValues)),
		MemoryInBytesByLabelName:    lines(labels(func(l *read.LabelCount) uint64 { return l.ValueBytes })),
		SeriesCountByLabelValuePair: lines(n.SeriesByPair(limit)),
	}, nil
}
