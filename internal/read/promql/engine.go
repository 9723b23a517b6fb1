package promql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/read/slots"
)

// Engine is the upstream engine with the commonest and most expensive nodes replaced: functions over the
// samples of a range, and aggregations of those or of a selector. It computes them series by series while
// it reads, floats and histograms. It never holds the samples of several series together, and below an
// aggregation not even the values of each series. Everything else is left to upstream. Results and warnings
// are equal bit for bit, with one difference: samples that are computed here do not count towards upstream's
// EngineOpts.MaxSamples. The quota of the query bounds them.
//
// Queries of storages other than a [Queryable] go to upstream, and so do queries that ask for statistics
// (see [QueryOpts]). The upstream engine must not be made with EnableTypeAndUnitLabels.
type Engine struct {
	Upstream upstream.QueryEngine
	// Set these if the upstream engine was made with the options of the same names. Upstream then computes
	// some nodes differently, and those are left to it.
	UseStartTimestamps, EnableDelayedNameRemoval bool
	// SubqueryStep is the step of subqueries without one, if that is always the same; 0 otherwise.
	SubqueryStep time.Duration
	// Timeout is upstream's timeout for a query; 0 means none. It includes a second evaluation by upstream.
	Timeout time.Duration
}

// QueryOpts are upstream's options. Statistics says that the caller reads the number of samples in
// [upstream.Query.Stats], which does not include samples computed here.
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

// replaced makes upstream's query and changes its statement, which upstream evaluates as it finds it. Each
// replaced node becomes a selector, whose series the engine then selects from the storage like any others.
func (e *Engine) replaced(q storage.Queryable, opts upstream.QueryOpts, begin func(storage.Queryable) (upstream.Query, error)) (upstream.Query, error) {
	ours, ok := q.(*Queryable)
	if !ok {
		return begin(q)
	}
	o, asked := opts.(QueryOpts)
	query, replaced, err := e.begin(ours, begin, !asked || !o.Statistics || ours.Rollups != nil)
	if err != nil || !replaced {
		return query, err
	}
	return &localQuery{Query: query, q: ours, timeout: e.Timeout, again: func(replace bool) (upstream.Query, error) {
		query, _, err := e.begin(ours, begin, replace)
		return query, err
	}}, nil
}

// begin makes upstream's query over a storage that charges for what upstream holds. It reports whether nodes
// were replaced.
func (e *Engine) begin(ours *Queryable, begin func(storage.Queryable) (upstream.Query, error), replace bool) (_ upstream.Query, replaced bool, err error) {
	taken := &localQueryable{Queryable: ours}
	query, err := begin(taken)
	if err != nil {
		return nil, false, err
	}
	stmt, ok := query.Statement().(*parser.EvalStmt)
	if !ok {
		return query, false, nil
	}
	if replace {
		taken.nodes = replaceNodes(stmt, e)
	}
	taken.holdings = holdings(stmt, e)
	return query, len(taken.nodes) > 0, nil
}

// errNeedsUpstream says that a node has met something that only upstream's engine computes.
var errNeedsUpstream = errors.New("promql: the node must be evaluated by the upstream engine")

// localQuery evaluates replaced nodes here. If one of them needs upstream, it evaluates the whole query
// again there, and if rollups lack points that came late, again with points.
type localQuery struct {
	upstream.Query
	q       *Queryable
	timeout time.Duration
	again   func(replace bool) (upstream.Query, error)
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
	for {
		late := errors.Is(r.Err, slots.ErrLate) && !q.q.late
		if !late && !errors.Is(r.Err, errNeedsUpstream) {
			return r
		}
		q.q.late = q.q.late || late
		q.Query.Close()
		q.q.Quota.Revert(charged)
		q.q.Cost.Series.Store(series)
		q.q.Cost.Samples.Store(samples)
		query, err := q.again(late)
		if err != nil {
			return &upstream.Result{Err: err}
		}
		q.Query = query
		r = q.Query.Exec(ctx)
	}
}

// localQueryable computes replaced nodes, and is its Queryable for all other selectors. It charges what
// upstream holds for either.
type localQueryable struct {
	*Queryable
	nodes    map[*labels.Matcher]*node
	holdings map[*labels.Matcher]*holding
}

func (t *localQueryable) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{q: t.Queryable, mint: mint, maxt: maxt, nodes: t.nodes, holdings: t.holdings}, nil
}

// Features are names of experimental features, separated by commas, as in --enable-feature of Prometheus.
type Features string

const (
	experimentalFunctions = "promql-experimental-functions"
	durationExpressions   = "promql-duration-expr"
	extendedRanges        = "promql-extended-range-selectors"
	fillModifiers         = "promql-binop-fill-modifiers"
	delayedNames          = "promql-delayed-name-removal"
	perStepStats          = "promql-per-step-stats"
	startTimestamps       = "use-start-timestamps"
)

// known returns the features of Prometheus that are about the evaluation of queries.
func known() []string {
	return []string{
		fillModifiers, delayedNames, durationExpressions, experimentalFunctions, extendedRanges, perStepStats, startTimestamps,
	}
}

// UnmarshalText parses a list of features, and refuses unknown ones.
func (f *Features) UnmarshalText(text []byte) error {
	*f = Features(text)
	for _, name := range f.names() {
		if !slices.Contains(known(), name) {
			return fmt.Errorf("%q is not a feature of queries: must be one of %s", name, strings.Join(known(), ", "))
		}
	}
	return nil
}

func (f Features) names() []string {
	if f == "" {
		return nil
	}
	return strings.Split(string(f), ",")
}

func (f Features) has(name string) bool { return slices.Contains(f.names(), name) }

// Parser returns upstream's parser with the features. Duration expressions are always on, as in Prometheus.
// An error about a feature that is off names the setting of Shale.
func (f Features) Parser() parser.Parser {
	return featureParser{parser.NewParser(parser.Options{
		EnableExperimentalFunctions: f.has(experimentalFunctions), ExperimentalDurationExpr: true,
		EnableExtendedRangeSelectors: f.has(extendedRanges), EnableBinopFillModifiers: f.has(fillModifiers),
	})}
}

// Engine returns the engine, over upstream's with the features. The parser of the options is set here.
func (f Features) Engine(o upstream.EngineOpts) (*Engine, *upstream.Engine) {
	o.Parser = f.Parser()
	o.EnableDelayedNameRemoval, o.UseStartTimestamps = f.has(delayedNames), f.has(startTimestamps)
	o.EnablePerStepStats = f.has(perStepStats)
	u := upstream.NewEngine(o)
	return &Engine{
		Upstream: u, Timeout: o.Timeout, EnableDelayedNameRemoval: o.EnableDelayedNameRemoval, UseStartTimestamps: o.UseStartTimestamps,
	}, u
}

// featureParser adds the setting to errors about features.
type featureParser struct{ parser.Parser }

// ParseExpr parses an expression.
func (p featureParser) ParseExpr(text string) (parser.Expr, error) {
	expr, err := p.Parser.ParseExpr(text)
	var all parser.ParseErrors
	if errors.As(err, &all) {
		for i := range all {
			all[i].Err = named(all[i].Err)
		}
	}
	return expr, err
}

// named adds the name of the setting to an error of upstream's parser about a feature that is off.
func named(err error) error {
	text := err.Error()
	feature := ""
	switch {
	case strings.HasSuffix(text, "() is experimental and must be enabled with --enable-feature="+experimentalFunctions):
		return errors.New(strings.Replace(text, "--enable-feature=", "--query.enable-feature=", 1))
	case strings.HasPrefix(text, "function ") && strings.HasSuffix(text, " is not enabled"):
		feature = experimentalFunctions
	case text == "anchored modifier is experimental and not enabled", text == "smoothed modifier is experimental and not enabled":
		feature = extendedRanges
	case text == "binop fill modifiers are experimental and not enabled":
		feature = fillModifiers
	default:
		return err
	}
	return fmt.Errorf("%w (--query.enable-feature=%s)", err, feature)
}
