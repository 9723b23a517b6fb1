package app

import (
	"context"
	"math"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/dayfile"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/asked"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/sketch"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/usage"
	"github.com/shaledb/shale/internal/write/creators"
	"github.com/shaledb/shale/internal/write/groups"
)

// creatorsFolder has what created series on each day, in the data folder.
const creatorsFolder = "creators"

// openCreators counts what creates series until the engine closes, which saves the counts.
func openCreators(e *Engine) {
	fs := e.o.FS
	t := creators.Open(creators.Options{FS: fs, Dir: fs.PathJoin(e.o.DataDir, creatorsFolder), Now: e.o.Now, Registerer: e.o.Registerer, Logger: e.o.Logger})
	cancel := e.path.Watch(t.Observe)
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	if !e.o.Idle {
		done.Go(func() { t.Run(ctx) })
	}
	e.creators, e.closeTables = t, append(e.closeTables, func() {
		cancel()
		stop()
		done.Wait()
		t.Save()
	})
}

// openGroups counts series by metrics and label sets, for the tenants that have limits for these, until the
// engine closes.
func openGroups(e *Engine) *groups.Table {
	t := groups.New(groups.Options{
		Limits: e.o.Tenants.groups, Active: e.activeSeries, Now: e.o.Now, Registerer: e.o.Registerer, Logger: e.o.Logger,
	})
	e.closeTables = append(e.closeTables, t.Close)
	return t
}

// activeSeries emits the labels of the active series of a tenant.
func (e *Engine) activeSeries(ctx context.Context, tenant string, s model.Signal, emit func(model.Labels)) error {
	return activeSeries(ctx, e.head, e.recent, tenant, s, emit)
}

// activeSeries emits the labels of the active series of a tenant in a head.
func activeSeries(ctx context.Context, h *head.Head, recent read.Source, tenant string, s model.Signal, emit func(model.Labels)) error {
	active, err := h.Active(tenant, s)
	if err != nil {
		return err
	}
	set, err := read.New(read.Options{Sources: []read.Source{recent}}).Select(ctx, &model.Request{
		Tenant: tenant, Signal: s, Range: model.Always(), LabelsOnly: true,
	})
	if err != nil {
		return err
	}
	defer set.Close()
	for set.Next(ctx) {
		if active(set.Key()) {
			emit(set.Labels())
		}
	}
	return set.Err()
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
		if c.e.recent == nil {
			return nil, errNoHead
		}
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
	if c.e.head == nil {
		return nil, errNoHead
	}
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
	if e.recent == nil {
		return prom.TSDBStatus{}, errNoHead
	}
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

// askedFolder has what queries have asked for, in the data folder.
const askedFolder = "asked"

// openAsked notes what queries ask for until the engine closes, which saves it.
func openAsked(e *Engine) {
	fs := e.o.FS
	t := asked.Open(asked.Options{FS: fs, Dir: fs.PathJoin(e.o.DataDir, askedFolder), Now: e.o.Now, Registerer: e.o.Registerer, Logger: e.o.Logger})
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	if !e.o.Idle {
		done.Go(func() { t.Run(ctx) })
	}
	e.asked, e.closeTables = t, append(e.closeTables, func() {
		stop()
		done.Wait()
		t.Save()
	})
}

// Unused finds the metrics and labels of the series of now that no query has asked for, and what they take.
func (c cardinality) Unused(ctx context.Context, q *prom.UnusedQuery) (*prom.Unused, error) {
	if c.e.recent == nil {
		return nil, errNoHead
	}
	quota := &model.Quota{Tenant: q.Tenant, MaxBytes: q.Quota.MaxBytes, Pool: q.Quota.Pool}
	defer quota.Release()
	req := &model.Request{Tenant: q.Tenant, Signal: model.Metrics, Range: model.Always(), LabelsCharged: true, Quota: quota, Cost: q.Cost}
	all, err := read.CountLabels(ctx, c.e.recent, req, "")
	if err != nil {
		return nil, err
	}
	defer all.Release()
	seen := c.e.asked.Look(q.Tenant)
	out := &prom.Unused{Since: seen.Since, Days: seen.Days, Full: seen.Full, Series: all.Series}
	if seen.Full {
		return out, nil
	}
	metrics := all.SeriesByValue(model.NameLabel, math.MaxInt)
	if err := c.markSelected(ctx, req, metrics, &seen); err != nil {
		return nil, err
	}
	saves, err := c.e.savings(ctx, q.Tenant)
	if err != nil {
		return nil, err
	}
	for _, m := range metrics {
		if m.Name == "" || seen.Metrics[m.Name] {
			continue
		}
		if out.Metrics++; len(out.ByMetric) < q.Limit {
			s := saves(m.Count)
			out.ByMetric = append(out.ByMetric, prom.UnusedMetric{Name: m.Name, Saving: s})
			out.Saved.Series += s.Series
			out.Saved.SamplesPerDay += s.SamplesPerDay
			out.Saved.BytesPerDay += s.BytesPerDay
			out.Saved.DollarsPerMonth += s.DollarsPerMonth
		}
	}
	for _, l := range all.Labels(math.MaxInt, func(l *read.LabelCount) uint64 { return l.ValueBytes }) {
		if l.Name == model.NameLabel || seen.Labels[l.Name] {
			continue
		}
		if out.Labels++; len(out.ByLabel) < q.Limit {
			out.ByLabel = append(out.ByLabel, prom.UnusedLabel{
				Name: l.Name, Series: l.Series, Values: l.Values, ValueBytes: l.ValueBytes, Droppable: l.Values == 1 && l.Series == all.Series,
			})
		}
	}
	out.Relabel = relabelRules(out)
	return out, nil
}

// markSelected marks the metrics that selectors without the name of one metric have selected.
func (c cardinality) markSelected(ctx context.Context, req *model.Request, metrics []sketch.Counted, seen *asked.Seen) error {
	for _, ms := range seen.Selectors {
		byName := true
		for i := range ms {
			byName = byName && ms[i].Name == model.NameLabel
		}
		if byName {
			for _, m := range metrics {
				if matchesAll(ms, m.Name) {
					seen.Metrics[m.Name] = true
				}
			}
			continue
		}
		r := *req
		r.Matchers = ms
		n, err := read.CountLabels(ctx, c.e.recent, &r, model.NameLabel)
		if err != nil {
			return err
		}
		for _, m := range n.SeriesByValue(model.NameLabel, math.MaxInt) {
			seen.Metrics[m.Name] = true
		}
		n.Release()
	}
	return nil
}

func matchesAll(ms []model.Matcher, value string) bool {
	for i := range ms {
		if !ms[i].Match(value) {
			return false
		}
	}
	return true
}

// savings returns what a number of series of a tenant takes: as many samples as its mean series had on the
// days of the last week that are over, or today if there are none.
func (e *Engine) savings(ctx context.Context, tenant string) (func(series uint64) prom.Saving, error) {
	now := time.Unix(0, e.now()).UTC()
	day := func(ago int) string { return now.AddDate(0, 0, -ago).Format(dayfile.Layout) }
	perSeries := 0.0
	for _, days := range [][2]string{{day(7), day(1)}, {day(0), day(0)}} {
		r, err := e.usage.Report(ctx, url.Values{"tenant": {tenant}, "from": {days[0]}, "to": {days[1]}})
		if err != nil {
			return nil, err
		}
		if len(r.Tenants) == 1 && r.Tenants[0].SeriesDays > 0 {
			perSeries = float64(r.Tenants[0].Samples) / float64(r.Tenants[0].SeriesDays)
			break
		}
	}
	return func(series uint64) prom.Saving {
		const month = 30
		s := prom.Saving{Series: series, SamplesPerDay: perSeries * float64(series)}
		s.BytesPerDay = diskPerSample * s.SamplesPerDay
		total := usage.Total{
			Usage: usage.Usage{Samples: int64(month * s.SamplesPerDay)}, SeriesDays: int64(month * series), StoredByteDays: int64(month * month * s.BytesPerDay),
		}
		s.DollarsPerMonth = float64(e.o.Prices.Cost(&total, &e.o.ReadPrices))
		return s
	}, nil
}

// relabelRules drops metrics and labels.
func relabelRules(u *prom.Unused) string {
	var metrics, labels []string
	for _, m := range u.ByMetric {
		metrics = append(metrics, regexp.QuoteMeta(m.Name))
	}
	for _, l := range u.ByLabel {
		if l.Droppable {
			labels = append(labels, regexp.QuoteMeta(l.Name))
		}
	}
	quoted := func(all []string) string { return "'" + strings.ReplaceAll(strings.Join(all, "|"), "'", "''") + "'" }
	text := ""
	if len(metrics) > 0 {
		text += "- source_labels: [__name__]\n  regex: " + quoted(metrics) + "\n  action: drop\n"
	}
	if len(labels) > 0 {
		text += "- regex: " + quoted(labels) + "\n  action: labeldrop\n"
	}
	return text
}
