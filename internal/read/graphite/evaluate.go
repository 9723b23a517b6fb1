package graphite

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/read/graphite/series"
	"github.com/shaledb/shale/internal/read/graphite/syntax"
)

// run is the evaluation of one query. It is used by one goroutine.
type run struct {
	*Engine
	q        *Query
	policy   func(name string) (policy.Policy, error)
	rollups  string // names the rules by which rollups are made; empty: there are none
	cache    map[fetchKey][]fetched
	composed int
}

// evaluate computes a node: a series.List, a []series.List, or a constant.
func (r *run) evaluate(w *function.Window, e syntax.Expr) (any, error) {
	if err := w.Err(); err != nil {
		return nil, err
	}
	switch n := e.(type) {
	case *syntax.Literal:
		return n.Value, nil
	case *syntax.Path:
		return r.path(w, n)
	case *syntax.Template:
		scoped := *w
		scoped.Scope = r.scope(n)
		v, err := r.evaluate(&scoped, n.Body)
		scoped.Scope = w.Scope
		*w = scoped
		return v, err
	case *syntax.Call:
		return r.call(w, n)
	}
	return nil, fmt.Errorf("%w: node %T", model.ErrCorrupt, e)
}

// scope returns the values of a template: those of the request win, and come last.
func (r *run) scope(t *syntax.Template) []syntax.Value {
	values := make([]syntax.Value, 0, len(t.Values)+len(r.q.Template))
	for _, v := range t.Values {
		if _, given := r.q.Template[v.Name]; !given {
			values = append(values, v)
		}
	}
	for _, name := range sortedKeys(r.q.Template) {
		values = append(values, syntax.Value{Name: name, Value: r.q.Template[name]})
	}
	return values
}

var plainNumber = regexp.MustCompile(`^-?[\d.]+$`)

// path fetches a path, in which a template may have variables. A path that is nothing but a variable stands
// for its value.
func (r *run) path(w *function.Window, p *syntax.Path) (any, error) {
	text := p.Text
	scope, _ := w.Scope.([]syntax.Value)
	for _, v := range scope {
		if text != "$"+v.Name {
			text = strings.ReplaceAll(text, "$"+v.Name, series.Text(v.Value))
			continue
		}
		if s, ok := v.Value.(string); ok && plainNumber.MatchString(s) {
			if f, err := strconv.ParseFloat(s, 64); err == nil {
				return f, nil
			}
		}
		return v.Value, nil
	}
	return r.fetch(w, text)
}

// call binds the arguments of a call and runs it.
func (r *run) call(w *function.Window, n *syntax.Call) (any, error) {
	if n.Name == "seriesByTag" {
		return r.byTags(w, n)
	}
	f := r.functions[n.Name]
	if f == nil {
		return nil, fmt.Errorf("%w: Received request for unknown function: %s (position %d)", model.ErrInvalid, n.Name, n.At+1)
	}
	args := make([]any, len(n.Args))
	for i, a := range n.Args {
		v, err := r.evaluate(w, a)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	var named []function.Named
	for _, k := range n.Kwargs {
		v, err := r.evaluate(w, k.Value)
		if err != nil {
			return nil, err
		}
		named = append(named, function.Named{Name: k.Name, Value: v})
	}
	values, err := f.Bind(args, named)
	if err != nil {
		return nil, err
	}
	return f.Call(&function.Call{Window: w, Engine: r, Function: f, Values: values, Source: n})
}

// Again evaluates the first argument of a call once more, over another window.
func (r *run) Again(c *function.Call, from, until int64) (series.List, error) {
	n, _ := c.Source.(*syntax.Call)
	if n == nil {
		return nil, nil
	}
	arg := n.Args
	if len(arg) == 0 {
		if len(n.Kwargs) == 0 {
			return nil, nil
		}
		arg = []syntax.Expr{n.Kwargs[0].Value}
	}
	w := *c.Window
	w.From, w.Until = from, until
	return r.series(&w, arg[0])
}

// Target evaluates a target that a function has composed.
func (r *run) Target(c *function.Call, target string) (series.List, error) {
	if r.composed++; r.composed > maxComposed {
		return nil, fmt.Errorf("%w: %w: more than %d", model.ErrInvalid, errDepth, maxComposed)
	}
	defer func() { r.composed-- }()
	tree, err := syntax.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Function.Name, err)
	}
	w := *c.Window
	return r.series(&w, tree)
}

// Lookup returns a function by its name; nil: there is none.
func (r *run) Lookup(name string) *function.Function { return r.functions[name] }

// Apply calls a function with lists of series.
func (r *run) Apply(c *function.Call, f *function.Function, lists ...series.List) (series.List, error) {
	args := make([]any, len(lists))
	for i, list := range lists {
		args[i] = list
	}
	values, err := f.Bind(args, nil)
	if err != nil {
		return nil, err
	}
	v, err := f.Call(&function.Call{Window: c.Window, Engine: r, Function: f, Values: values, Source: c.Source})
	if err != nil {
		return nil, err
	}
	list, ok := v.(series.List)
	if !ok {
		return nil, fmt.Errorf("%w: %s does not return a list of series", model.ErrInvalid, f.Name)
	}
	return list, nil
}

// valueBytes is the memory of a value.
const valueBytes = 8

// Charge takes memory for values from the quota.
func (r *run) Charge(_ *function.Call, values int64) error { return r.charge(values) }

func (r *run) charge(values int64) error {
	if values <= 0 {
		return nil
	}
	return r.q.Quota.TakeBytes(values * valueBytes)
}

// Events returns the times of events.
func (r *run) Events(c *function.Call, tags []string) ([]int64, error) {
	if r.o.Events == nil {
		return nil, fmt.Errorf("%w: this server keeps no events", model.ErrInvalid)
	}
	return r.o.Events(c.Window, r.q, c.From, c.Until, tags)
}
