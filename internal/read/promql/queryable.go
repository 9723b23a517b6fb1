package promql

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/results"
)

// Queryable reads the data of one tenant under one quota. Make one for each query, with the quota and the
// cost of that query.
type Queryable struct {
	Read   *read.Querier
	Tenant string
	Quota  *model.Quota
	Cost   *model.Cost
	// Results keeps values of nodes; nil: everything is computed.
	Results *results.Tier
}

// Querier returns a querier over [mint, maxt] milliseconds. It opens nothing yet.
func (q *Queryable) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{q: q, mint: mint, maxt: maxt}, nil
}

// closer releases what a set pins. It may be called more than once.
type closer interface{ close() error }

// querier is used by one goroutine, the engine's.
type querier struct {
	q          *Queryable
	mint, maxt int64
	nodes      map[*labels.Matcher]*node    // computed here, by the only matcher of their selector
	holdings   map[*labels.Matcher]*holding // what upstream holds, by the first matcher; nil: unknown
	open       []closer
}

// Select pins what the result needs immediately, so that all selectors of an expression see the store at
// about the same moment. It reads when the set is walked.
func (q *querier) Select(ctx context.Context, sortSeries bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	if len(ms) == 1 {
		if n := q.nodes[ms[0]]; n != nil {
			return q.compute(ctx, n, q.holdings[ms[0]])
		}
	}
	mint, maxt := q.mint, q.maxt
	set := &seriesSet{ctx: ctx, quota: q.q.Quota}
	if len(ms) > 0 {
		set.holding = q.holdings[ms[0]]
	}
	if hints != nil {
		if hints.ShardCount > 0 {
			return storage.ErrSeriesSet(fmt.Errorf("%w: select: sharding is not supported", model.ErrInvalid))
		}
		mint, maxt = hints.Start, hints.End
		set.limit, set.labelsOnly = hints.Limit, hints.Func == "series"
		if !sortSeries {
			set.only = projectionOf(hints, q.q.Quota)
		}
	}
	req := q.q.request(mint, maxt, ms)
	req.LabelsOnly, req.LabelsCharged = set.labelsOnly, set.only != nil
	if set.from = req.Range.Min; !set.labelsOnly && req.Range.Min <= req.Range.Max {
		req.Range.Min = rangeOf(max(mint, math.MinInt64+1)-1, maxt).Min
	}
	var err error
	if set.rows, err = q.q.Read.Select(ctx, req); err != nil {
		return storage.ErrSeriesSet(err)
	}
	q.open = append(q.open, set)
	if sortSeries {
		return sorted(set)
	}
	return set
}

func (q *Queryable) request(mint, maxt int64, ms []*labels.Matcher) *model.Request {
	return &model.Request{
		Tenant: q.Tenant, Signal: model.Metrics, Matchers: Matchers(ms), Range: rangeOf(mint, maxt),
		Quota: q.Quota, Cost: q.Cost,
	}
}

// LabelValues returns the sorted values of one label, the first hints.Limit of them.
func (q *querier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	values, _, err := q.q.Read.LabelValues(ctx, q.q.request(q.mint, q.maxt, ms), name, limitOf(hints))
	return values, nil, err
}

// LabelNames returns the sorted label names, the first hints.Limit of them.
func (q *querier) LabelNames(ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names, _, err := q.q.Read.LabelNames(ctx, q.q.request(q.mint, q.maxt, ms), limitOf(hints))
	return names, nil, err
}

func limitOf(hints *storage.LabelHints) int {
	if hints == nil {
		return 0
	}
	return hints.Limit
}

// Close also closes the sets that were not walked to their end.
func (q *querier) Close() error {
	var errs []error
	for _, s := range q.open {
		errs = append(errs, s.close())
	}
	q.open = nil
	return errors.Join(errs...)
}
