package promql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

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
	// Rollups says that the query may use rollups, and which there are; nil: it reads points alone.
	Rollups *Rollups
	// late says that rollups lack points that came late, so that points are read wherever they are.
	late bool
}

// Rollups are the rules by which compaction has made rollups, for queries that may use them. Functions of
// [slots.Functions] read the summaries of slots in place of points where their windows consist of slots. All
// else reads points, and is refused where only rollups are left.
type Rollups struct {
	// ID names the rules.
	ID string
	// Steps are the lengths of all slots in seconds.
	Steps []int64
	// Of returns the lengths of the slots of a series. An error means that the rules cannot tell.
	Of func(l model.Labels) ([]int64, error)
}

// RollupUse says which queries use rollups.
type RollupUse string

// The uses.
const (
	RollupsOff    RollupUse = "off"    // none, and no summaries are made
	RollupsAsked  RollupUse = "asked"  // those that ask for it
	RollupsAlways RollupUse = "always" // all that do not refuse it
)

// UnmarshalText parses a use.
func (u *RollupUse) UnmarshalText(text []byte) error {
	*u = RollupUse(text)
	if all := []RollupUse{RollupsOff, RollupsAsked, RollupsAlways}; !slices.Contains(all, *u) {
		return fmt.Errorf("%q is unknown: must be one of off, asked, always", text)
	}
	return nil
}

// rolled lets a request return rollups, of the longest step that fits.
func (q *Queryable) rolled(req *model.Request, fits func(step int64) bool) {
	if q.Rollups == nil {
		return
	}
	req.Unlabelled = false
	req.Rollup = &model.RollupRequest{Policies: q.Rollups.ID, Crossing: true, Raw: q.late, Others: true}
	steps := []int64{0}
	for _, s := range q.Rollups.Steps {
		if fits != nil && fits(s) {
			steps = append(steps, s*1e9)
		}
	}
	if len(steps) == 1 {
		return
	}
	req.Rollup.Steps = steps
	req.Rollup.Of = func(l model.Labels) (best int64, err error) {
		all, err := q.Rollups.Of(l)
		for _, s := range all {
			if s*1e9 > best && fits(s) {
				best = s * 1e9
			}
		}
		return best, err
	}
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
	if !set.labelsOnly {
		q.q.rolled(req, nil)
		set.rolled, set.first, set.last = q.q.Rollups != nil, mint, maxt
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
