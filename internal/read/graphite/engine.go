package graphite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/read/graphite/series"
	"github.com/shaledb/shale/internal/read/graphite/syntax"
)

// Options connect an Engine to the store.
type Options struct {
	Read *read.Querier
	// Finder finds names by a glob; nil: the label index is asked with the glob itself.
	Finder Finder
	// Policies returns what says how the values of a name are laid out in time; a query takes it once. nil: a
	// value each minute, for a week.
	Policies func() func(name string) (policy.Policy, error)
	// Rollups returns the same, with the name of the rules by which rollups are made. nil: there are none.
	Rollups func() (of func(name string) (policy.Policy, error), id string)
	// Events returns the times of events, in Unix seconds; nil: queries for events are refused.
	Events func(ctx context.Context, q *Query, from, until int64, tags []string) ([]int64, error)
}

// Finder finds names.
type Finder interface {
	// Expand returns the names that satisfy a glob and may have samples in the range, in any order.
	Expand(ctx context.Context, q *Query, pattern string, r model.TimeRange) ([]string, error)
}

// Engine evaluates targets. It is safe for concurrent use.
type Engine struct {
	o         Options
	functions map[string]*function.Function
}

// New returns an Engine.
func New(o Options) *Engine {
	if o.Policies == nil {
		week := policy.Policy{Archives: []policy.Archive{{Step: 60, Points: 7 * 24 * 60}}}
		o.Policies = func() func(string) (policy.Policy, error) {
			return func(string) (policy.Policy, error) { return week, nil }
		}
	}
	e := &Engine{o: o, functions: make(map[string]*function.Function)}
	for _, f := range Table() {
		e.functions[f.Name] = f
	}
	return e
}

// Query is a request for series.
type Query struct {
	Tenant  string
	Targets []string
	// From and Until bound the window in Unix seconds: values lie after From and not after Until.
	From, Until int64
	// Now is the time of the request, in the zone of the request.
	Now time.Time
	// XFF is the least share of values present where values are consolidated.
	XFF float64
	// Template holds values for template(), which win over those in the target.
	Template map[string]string
	Quota    *model.Quota
	Cost     *model.Cost
}

// Render evaluates the targets of a query in order, and returns the series of all. Errors in a target are
// of class [model.ErrInvalid].
func (e *Engine) Render(ctx context.Context, q *Query) (series.List, error) {
	r := e.newRun(q)
	w := &function.Window{Context: ctx, From: q.From, Until: q.Until, Now: q.Now, XFF: q.XFF}
	trees := make([]syntax.Expr, 0, len(q.Targets))
	for _, target := range q.Targets {
		if strings.TrimSpace(target) == "" {
			continue
		}
		if err := q.Quota.TakeBytes(syntax.TreeBytes(target)); err != nil {
			return nil, err
		}
		tree, err := syntax.Parse(target)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
	}
	var all series.List
	for _, tree := range trees {
		list, err := r.series(w, tree)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func (e *Engine) newRun(q *Query) *run {
	r := &run{Engine: e, q: q, cache: make(map[fetchKey][]fetched)}
	if e.o.Rollups != nil {
		r.policy, r.rollups = e.o.Rollups()
	} else {
		r.policy = e.o.Policies()
	}
	return r
}

// errDepth stops functions that compose targets with themselves in them.
var errDepth = errors.New("targets that functions compose are nested too deeply")

// maxComposed bounds the depth of targets that functions compose.
const maxComposed = 20

// series evaluates a target, whose result must be series.
func (r *run) series(w *function.Window, e syntax.Expr) (series.List, error) {
	v, err := r.evaluate(w, e)
	if err != nil {
		return nil, err
	}
	list, ok := v.(series.List)
	if lists, divided := v.([]series.List); divided && len(lists) == 0 {
		return nil, nil
	}
	if !ok {
		return nil, fmt.Errorf("%w: expected a target that gives series, found one that gives %s", model.ErrInvalid, kind(v))
	}
	return list, nil
}

func kind(v any) string {
	switch v.(type) {
	case []series.List:
		return "lists of series"
	case string:
		return "a string"
	case nil:
		return "none"
	}
	return "a constant"
}
