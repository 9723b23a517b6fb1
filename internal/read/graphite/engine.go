package graphite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
	"github.com/shaledb/shale/internal/read/graphite/syntax"
)

// Options connect an Engine to the store.
type Options struct {
	Read *read.Querier
	// Finder finds names by a glob; nil: the label index is asked with the glob itself.
	Finder Finder
	// Archive says how the values of a name are kept; nil: the last value of each minute.
	Archive func(name string, from, until, now int64) Archive
	// Events returns the times of events, in Unix seconds; nil: there are none.
	Events func(ctx context.Context, q *Query, from, until int64, tags []string) ([]int64, error)
}

// Finder finds names.
type Finder interface {
	// Expand returns the names that satisfy a glob and may have samples in the range, in any order.
	Expand(ctx context.Context, q *Query, pattern string, r model.TimeRange) ([]string, error)
}

// Archive is the grid on which the values of a name are returned.
type Archive struct {
	// Step is the distance of the values, in seconds, and Base that of the values before they are aggregated.
	Step, Base int64
	// Method aggregates values of Base to Step, if at least the share XFF of them is there.
	Method string
	XFF    float64
	// Oldest is the least time that is kept, in Unix seconds.
	Oldest int64
}

// Engine evaluates targets. It is safe for concurrent use.
type Engine struct {
	o         Options
	functions map[string]*function.Function
}

// New returns an Engine.
func New(o Options) *Engine {
	if o.Archive == nil {
		o.Archive = func(string, int64, int64, int64) Archive { return Archive{Step: 60, Base: 60, Oldest: math.MinInt64} }
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
	r := &run{Engine: e, q: q, cache: make(map[fetchKey][]fetched)}
	w := &function.Window{Context: ctx, From: q.From, Until: q.Until, Now: q.Now, XFF: q.XFF}
	trees := make([]syntax.Expr, 0, len(q.Targets))
	for _, target := range q.Targets {
		if strings.TrimSpace(target) == "" {
			continue
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
