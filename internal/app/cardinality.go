package app

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/dayfile"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/sketch"
	"github.com/shaledb/shale/internal/write/creators"
)

// creatorsFolder has what created series on each day, in the data folder.
const creatorsFolder = "creators"

// openCreators counts what creates series until the returned function is called, which saves the counts.
func openCreators(e *Engine) (*creators.Table, func()) {
	fs := e.o.FS
	t := creators.Open(creators.Options{FS: fs, Dir: fs.PathJoin(e.o.DataDir, creatorsFolder), Now: e.o.Now, Registerer: e.o.Registerer, Logger: e.o.Logger})
	cancel := e.path.Watch(t.Observe)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	if !e.o.Idle {
		done.Go(func() { t.Run(ctx) })
	}
	return t, func() {
		cancel()
		stop()
		done.Wait()
		t.Save()
	}
}

// cardinality counts the series of an engine.
type cardinality struct{ e *Engine }

// Count counts series of now in the label store of the head, and those of a day by all rows of that day.
func (c cardinality) Count(ctx context.Context, q *prom.CountQuery) (*prom.Counts, error) {
	name := q.Label
	if q.By == prom.CountMetrics {
		name = model.NameLabel
	}
	// Series are not kept, so their number is not bounded.
	quota := &model.Quota{Tenant: q.Tenant, MaxBytes: q.Quota.MaxBytes, Pool: q.Quota.Pool}
	defer quota.Release()
	req := &model.Request{
		Tenant: q.Tenant, Signal: q.Signal, Matchers: shalepromql.Matchers(q.Matchers), Range: model.Always(), LabelsCharged: true,
		Quota: quota, Cost: q.Cost,
	}
	now, err := c.count(ctx, req, name, q.Day)
	if err != nil {
		return nil, err
	}
	defer now.Release()
	if q.Against.IsZero() {
		return listed(q, name, now), nil
	}
	before, err := c.count(ctx, req, name, q.Against)
	if err != nil {
		return nil, err
	}
	defer before.Release()
	return compared(q, name, now, before), nil
}

// count counts the series of a day, or of now if the day is zero.
func (c cardinality) count(ctx context.Context, req *model.Request, name string, day time.Time) (*read.Cardinality, error) {
	if day.IsZero() {
		return read.CountLabels(ctx, c.e.recent, req, name)
	}
	r := *req
	r.Range = model.TimeRange{Min: day.UnixNano(), Max: day.AddDate(0, 0, 1).UnixNano() - 1}
	return c.e.querier.Cardinality(ctx, &r, name)
}

// listed has what has most series, or of labels most values.
func listed(q *prom.CountQuery, name string, n *read.Cardinality) *prom.Counts {
	out := summary(q, name, n)
	if q.By == prom.CountLabels {
		for _, l := range n.Labels(q.Limit, mostValues) {
			out.List = append(out.List, prom.CountEntry{Name: l.Name, Series: l.Series, Values: &l.Values, ValueBytes: &l.ValueBytes})
		}
		return out
	}
	list := n.SeriesByPair
	if name != "" {
		list = func(limit int) []sketch.Counted { return n.SeriesByValue(name, limit) }
	}
	for _, x := range list(q.Limit) {
		out.List = append(out.List, prom.CountEntry{Name: x.Name, Series: x.Count})
	}
	return out
}

// compared lists what has changed most.
func compared(q *prom.CountQuery, name string, now, before *read.Cardinality) *prom.Counts {
	out := summary(q, name, now)
	out.Before, out.Undercount = &before.Series, now.Undercount()+before.Undercount()
	if q.By == prom.CountLabels {
		for _, x := range now.LabelChanges(before, q.Limit) {
			out.List = append(out.List, prom.CountEntry{Name: x.Name, Values: &x.Now, Before: &x.Before})
		}
		return out
	}
	for _, x := range now.Changes(before, name, q.Limit) {
		out.List = append(out.List, prom.CountEntry{Name: x.Name, Series: x.Now, Before: &x.Before})
	}
	return out
}

func mostValues(l *read.LabelCount) uint64 { return l.Values }

// summary has what all lists begin with.
func summary(q *prom.CountQuery, name string, n *read.Cardinality) *prom.Counts {
	out := &prom.Counts{Series: n.Series, Undercount: n.Undercount()}
	exact := true
	switch {
	case q.By == prom.CountLabels:
		for _, l := range n.Labels(math.MaxInt, mostValues) {
			out.Distinct++
			exact = exact && l.Exact
		}
	case name == "":
		for _, l := range n.Labels(math.MaxInt, mostValues) {
			out.Distinct += l.Values
			exact = exact && l.Exact
		}
	default:
		out.Distinct, exact = n.Values(name)
	}
	if !exact {
		out.DistinctError = sketch.StandardError
	}
	return out
}

// Active counts the active series of a tenant, and what has created series.
func (c cardinality) Active(ctx context.Context, q *prom.ActiveQuery) (*prom.Active, error) {
	created, over := c.e.creators.Now(q.Tenant, q.Signal, q.Limit)
	out := &prom.Active{Active: c.e.head.ActiveSeries(q.Tenant), New: creationsOf(&created)}
	out.New.Seconds = over.Seconds()
	days, err := c.e.creators.Days(ctx, q.Tenant, q.Signal, q.From.Format(dayfile.Layout), q.To.Format(dayfile.Layout), q.Limit)
	for i := range days {
		d := creationsOf(&days[i].Counts)
		d.Day = days[i].Day
		out.Days = append(out.Days, d)
	}
	return out, err
}

func creationsOf(c *creators.Counts) prom.Creations {
	out := prom.Creations{Series: c.Series, Undercount: c.Undercount, List: []prom.CountEntry{}}
	for _, n := range c.Names {
		out.List = append(out.List, prom.CountEntry{Name: n.Name, Series: n.Series})
	}
	return out
}

// tsdbStatus counts the series of a tenant in the label store of the head: the active ones, and those with
// samples that are not in the bucket yet.
func tsdbStatus(ctx context.Context, e *Engine, tenant string, limit int, q *model.Quota, cost *model.Cost) (prom.TSDBStatus, error) {
	times := e.recent.TimeRange(model.Metrics, tenant)
	req := &model.Request{Tenant: tenant, Signal: model.Metrics, Range: model.Always(), LabelsCharged: true, Quota: q, Cost: cost}
	n, err := read.CountLabels(ctx, e.recent, req, "")
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
