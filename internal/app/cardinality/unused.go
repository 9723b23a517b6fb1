package cardinality

import (
	"context"
	"math"
	"net/url"
	"regexp"
	"strings"

	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/dayfile"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/asked"
	"github.com/shaledb/shale/internal/sketch"
	"github.com/shaledb/shale/internal/usage"
)

// Unused finds the metrics and labels of the series of now that no query has asked for, and what they take.
func (c *Counter) Unused(ctx context.Context, q *prom.UnusedQuery) (*prom.Unused, error) {
	if c.Recent == nil {
		return nil, c.NoHead
	}
	quota := &model.Quota{Tenant: q.Tenant, MaxBytes: q.Quota.MaxBytes, Pool: q.Quota.Pool}
	defer quota.Release()
	req := &model.Request{Tenant: q.Tenant, Signal: model.Metrics, Range: model.Always(), LabelsCharged: true, Quota: quota, Cost: q.Cost}
	all, err := read.CountLabels(ctx, c.Recent, req, "")
	if err != nil {
		return nil, err
	}
	defer all.Release()
	seen := c.Asked.Look(q.Tenant)
	out := &prom.Unused{Since: seen.Since, Days: seen.Days, Full: seen.Full, Series: all.Series}
	if seen.Full {
		return out, nil
	}
	metrics := all.SeriesByValue(model.NameLabel, math.MaxInt)
	if err := c.markSelected(ctx, req, metrics, &seen); err != nil {
		return nil, err
	}
	saves, err := c.savings(ctx, q.Tenant)
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
func (c *Counter) markSelected(ctx context.Context, req *model.Request, metrics []sketch.Counted, seen *asked.Seen) error {
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
		n, err := read.CountLabels(ctx, c.Recent, &r, model.NameLabel)
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
func (c *Counter) savings(ctx context.Context, tenant string) (func(series uint64) prom.Saving, error) {
	now := c.Now().UTC()
	day := func(ago int) string { return now.AddDate(0, 0, -ago).Format(dayfile.Layout) }
	perSeries := 0.0
	for _, days := range [][2]string{{day(7), day(1)}, {day(0), day(0)}} {
		r, err := c.Usage.Report(ctx, url.Values{"tenant": {tenant}, "from": {days[0]}, "to": {days[1]}})
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
		s.BytesPerDay = c.SampleBytes * s.SamplesPerDay
		total := usage.Total{
			Usage: usage.Usage{Samples: int64(month * s.SamplesPerDay)}, SeriesDays: int64(month * series), StoredByteDays: int64(month * month * s.BytesPerDay),
		}
		s.DollarsPerMonth = float64(c.Prices.Cost(&total, &c.ReadPrices))
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
