package promql

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// Engine is the upstream engine, of which the commonest and dearest nodes of an expression are taken over:
// functions of the samples of a range, and aggregations of those or of a selector. They are computed series
// by series while the series are read: samples are never held together, and under an aggregation neither are
// the values of single series. All else, and all that is rare, is upstream's; answers and warnings are the
// same bit for bit. Only upstream's limit of samples held at one time (EngineOpts.MaxSamples) does not see
// what is computed here, which the quota of the query bounds.
//
// Queries of other storages than a [Queryable] are upstream's, and so are those that ask for statistics (see
// [QueryOpts]). The upstream engine must not be made with EnableTypeAndUnitLabels.
type Engine struct {
	Upstream upstream.QueryEngine
	// These say that the upstream engine was made with the options of the same names, under which it computes
	// more than is known here: that is left to it.
	UseStartTimestamps, EnableDelayedNameRemoval bool
	// Timeout is upstream's for a query; 0: none. It holds for one that has to be evaluated anew, too.
	Timeout time.Duration
}

// QueryOpts are upstream's, and say whether the number of samples in [upstream.Query.Stats] will be looked
// at. What is computed here is not counted there.
type QueryOpts struct {
	upstream.QueryOpts
	Statistics bool
}

// NewInstantQuery returns a query at one time.
func (e *Engine) NewInstantQuery(ctx context.Context, q storage.Queryable, opts upstream.QueryOpts, text string, at time.Time) (upstream.Query, error) {
	return e.replaced(q, opts, func(q storage.Queryable) (upstream.Query, error) {
		return e.Upstream.NewInstantQuery(ctx, q, opts, text, at)
	})
}

// NewRangeQuery returns a query at each step of a range.
func (e *Engine) NewRangeQuery(ctx context.Context, q storage.Queryable, opts upstream.QueryOpts, text string, start, end time.Time, step time.Duration) (upstream.Query, error) {
	return e.replaced(q, opts, func(q storage.Queryable) (upstream.Query, error) {
		return e.Upstream.NewRangeQuery(ctx, q, opts, text, start, end, step)
	})
}

// replaced makes upstream's query and changes its statement, which upstream evaluates as it finds it: a node that
// is taken over becomes a selector, for whose series the storage is asked as for those of any other.
func (e *Engine) replaced(q storage.Queryable, opts upstream.QueryOpts, begin func(storage.Queryable) (upstream.Query, error)) (upstream.Query, error) {
	ours, ok := q.(*Queryable)
	if o, asked := opts.(QueryOpts); !ok || asked && o.Statistics {
		return begin(q)
	}
	taken := &localQueryable{Queryable: ours}
	query, err := begin(taken)
	if err != nil {
		return nil, err
	}
	stmt, ok := query.Statement().(*parser.EvalStmt)
	if !ok {
		return query, nil
	}
	if taken.nodes = replaceNodes(stmt, e); len(taken.nodes) == 0 {
		return query, nil
	}
	return &localQuery{Query: query, q: ours, timeout: e.Timeout, again: func() (upstream.Query, error) { return begin(q) }}, nil
}

// errNeedsUpstream says that a node has met what only upstream's engine computes.
var errNeedsUpstream = errors.New("promql: the node is upstream's")

// localQuery is asked again of upstream alone if a node has met what it does not compute.
type localQuery struct {
	upstream.Query
	q       *Queryable
	timeout time.Duration
	again   func() (upstream.Query, error)
}

// Exec evaluates the query.
func (q *localQuery) Exec(ctx context.Context) *upstream.Result {
	if q.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.timeout)
		defer cancel()
	}
	charged, series, samples := q.q.Quota.Charged(), q.q.Cost.Series.Load(), q.q.Cost.Samples.Load()
	r := q.Query.Exec(ctx)
	if !errors.Is(r.Err, errNeedsUpstream) {
		return r
	}
	q.Query.Close()
	q.q.Quota.Revert(charged)
	q.q.Cost.Series.Store(series)
	q.q.Cost.Samples.Store(samples)
	query, err := q.again()
	if err != nil {
		return &upstream.Result{Err: err}
	}
	q.Query = query
	return q.Query.Exec(ctx)
}

// localQueryable answers for the nodes that were taken over, and for all else as ever.
type localQueryable struct {
	*Queryable
	nodes map[*labels.Matcher]*node
}

func (t *localQueryable) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{q: t.Queryable, mint: mint, maxt: maxt, nodes: t.nodes}, nil
}
