package cardinality

import (
	"context"
	"math"
	"time"

	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/dayfile"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/asked"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/sketch"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/head/query"
	"github.com/shaledb/shale/internal/usage"
	"github.com/shaledb/shale/internal/write/creators"
)

// Counter counts the series of tenants.
type Counter struct {
	// Recent has the labels of the series of now, and Head says which are active; nil: this process has neither,
	// and NoHead is the answer to what needs them.
	Recent *query.Source
	Head   *head.Head
	NoHead error
	// Querier reads the series of a day.
	Querier *read.Querier
	// Creators says what has created series, and Asked what queries have asked for.
	Creators *creators.Table
	Asked    *asked.Table
	// Usage says how many samples a series has, of which each takes SampleBytes; Prices and ReadPrices what
	// that costs.
	Usage       *usage.Ledger
	SampleBytes float64
	Prices      usage.Prices
	ReadPrices  bill.Prices
	Now         func() time.Time
}

// Count counts series of now in the label store of the head, and those of a day by all rows of that day.
func (c *Counter) Count(ctx context.Context, q *prom.CountQuery) (*prom.Counts, error) {
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
func (c *Counter) count(ctx context.Context, req *model.Request, name string, day time.Time) (*read.Cardinality, error) {
	if day.IsZero() {
		if c.Recent == nil {
			return nil, c.NoHead
		}
		return read.CountLabels(ctx, c.Recent, req, name)
	}
	r := *req
	r.Range = model.TimeRange{Min: day.UnixNano(), Max: day.AddDate(0, 0, 1).UnixNano() - 1}
	return c.Querier.Cardinality(ctx, &r, name)
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
func (c *Counter) Active(ctx context.Context, q *prom.ActiveQuery) (*prom.Active, error) {
	if c.Head == nil {
		return nil, c.NoHead
	}
	created, over := c.Creators.Now(q.Tenant, q.Signal, q.Limit)
	out := &prom.Active{Active: c.Head.ActiveSeries(q.Tenant), New: creationsOf(&created)}
	out.New.Seconds = over.Seconds()
	days, err := c.Creators.Days(ctx, q.Tenant, q.Signal, q.From.Format(dayfile.Layout), q.To.Format(dayfile.Layout), q.Limit)
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
