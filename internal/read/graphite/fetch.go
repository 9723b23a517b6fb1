package graphite

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
	"github.com/shaledb/shale/internal/read/graphite/syntax"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// fetchKey names what one request fetches once.
type fetchKey struct {
	path        string
	from, until int64
}

// fetched is a series as it was read. Its values are shared by all uses of its path.
type fetched struct {
	name             string
	tags             map[string]string
	start, end, step int64
	values           []float64
}

// fetch returns the series of a path, sorted by name.
func (r *run) fetch(w *function.Window, path, expression string) (series.List, error) {
	if strings.Contains(path, ";") {
		tags, err := series.ParseTags(path)
		if err != nil {
			return nil, err
		}
		return r.load(w, expression, exactTags(tags), len(tags))
	}
	if !isGlob(path) {
		return r.load(w, expression, []model.Matcher{equal(nameLabel, path)}, 1)
	}
	match, prefix, err := r.names(w, path)
	if err != nil || match == nil {
		return nil, err
	}
	match.Prefix = prefix
	return r.load(w, expression, []model.Matcher{*match}, 1)
}

// nameLabel is the label that holds the name of a metric.
const nameLabel = "__name__"

// names returns a matcher of the names that satisfy a glob; nil: there are none.
func (r *run) names(w *function.Window, pattern string) (*model.Matcher, string, error) {
	if r.o.Finder == nil {
		re, prefix, err := compileGlob(pattern)
		if err != nil {
			return nil, "", err
		}
		return &model.Matcher{Name: nameLabel, Op: model.MatchRegexp, Value: re.String(), Match: re.MatchString}, prefix, nil
	}
	names, err := r.o.Finder.Expand(w, r.q, pattern, nanos(w.From, w.Until))
	if err != nil || len(names) == 0 {
		return nil, "", err
	}
	known := make(map[string]struct{}, len(names))
	for _, n := range names {
		known[n] = struct{}{}
	}
	match := func(name string) bool { _, ok := known[name]; return ok }
	return &model.Matcher{Name: nameLabel, Op: model.MatchRegexp, Value: pattern, Set: names, Match: match}, "", nil
}

// anyNumber lets series have any number of labels.
const anyNumber = 0

// load reads the series that satisfy matchers and have a number of labels, and puts them on their grids.
func (r *run) load(w *function.Window, expression string, matchers []model.Matcher, labels int) (series.List, error) {
	key := fetchKey{expression, w.From, w.Until}
	all, known := r.cache[key]
	if !known {
		var err error
		if all, err = r.read(w, matchers, labels); err != nil {
			return nil, err
		}
		slices.SortFunc(all, func(a, b fetched) int { return strings.Compare(a.name, b.name) })
		r.cache[key] = all
	}
	list := make(series.List, len(all))
	for i := range all {
		f := &all[i]
		list[i] = &series.Series{
			Name: f.name, Start: f.start, End: f.end, Step: f.step, Values: f.values, Consolidation: "average", XFF: w.XFF,
			Tags: maps.Clone(f.tags), Path: expression,
		}
	}
	return list, nil
}

func (r *run) read(w *function.Window, matchers []model.Matcher, labels int) ([]fetched, error) {
	now := r.q.Now.Unix()
	until := min(w.Until, now)
	if w.From > now {
		return nil, nil
	}
	// An archive's first value is at most one step after the window's bounds.
	rg := nanos(w.From, until)
	set, err := r.o.Read.Select(w, &model.Request{
		Tenant: r.q.Tenant, Signal: model.Metrics, Matchers: matchers, Range: rg, Quota: r.q.Quota, Cost: r.q.Cost,
	})
	if err != nil {
		return nil, err
	}
	var all []fetched
	var rows model.Rows
	for err == nil && set.Next(w) {
		l := set.Labels()
		if n := l.Len(); labels != anyNumber && n != labels || labels == anyNumber && n < 2 {
			err = r.q.Quota.TakeBytes(-set.Charged())
			continue
		}
		rows.Reset()
		if err = set.AppendRows(w, &rows); err != nil {
			break
		}
		f := fetched{}
		f.name, f.tags = nameOf(l)
		if err = r.quantise(&f, &rows, r.o.Archive(f.name, w.From, until, now), w.From, until); err != nil {
			break
		}
		if f.step > 0 {
			all = append(all, f)
		}
	}
	if err == nil {
		err = set.Err()
	}
	if closing := set.Close(); err == nil {
		err = closing
	}
	return all, err
}

// maxPoints bounds a series: more values than any store keeps of a name.
const maxPoints = math.MaxInt32

// quantise puts rows on the grid of an archive. As in whisper, the value of a slot is the last one whose time lies in
// it, and slots begin after from and not after until.
func (r *run) quantise(f *fetched, rows *model.Rows, a Archive, from, until int64) error {
	from = max(from, a.Oldest)
	if until < from {
		return nil
	}
	f.step = a.Step
	f.start = from - floorMod(from, a.Step) + a.Step
	f.end = until - floorMod(until, a.Step) + a.Step
	if f.end == f.start {
		f.end += a.Step
	}
	n := (f.end - f.start) / a.Step
	ratio := a.Step / a.Base
	if n*ratio > maxPoints {
		return fmt.Errorf("%w: a window of %d s with a step of %d s has more than %d values", model.ErrLimit, until-from, a.Base, maxPoints)
	}
	if err := r.charge(n * ratio); err != nil {
		return err
	}
	slots := series.Nulls(int(n * ratio))
	for i := range rows.Len() {
		v := math.Float64frombits(rows.Values[i])
		if rows.Kind(i) != model.KindFloat || math.IsNaN(v) {
			continue
		}
		at := rows.Times[i] / nanosPerSecond
		if slot := (at - f.start) / a.Base; at >= f.start && slot < int64(len(slots)) {
			slots[slot] = v
		}
	}
	if ratio > 1 {
		s := series.Series{Values: slots, XFF: a.XFF, Consolidation: a.Method}
		var err error
		if slots, err = s.Consolidate(int(ratio), 0); err != nil {
			return err
		}
	}
	f.values = slots
	return nil
}

const nanosPerSecond = 1_000_000_000

// maxSlack is more than the longest step of an archive: rows of the last slot may lie after the window.
const maxSlack = 366 * 86400

// nanos returns the range of the rows of the slots in a window. Bounds saturate.
func nanos(from, until int64) model.TimeRange {
	const limit = math.MaxInt64/nanosPerSecond - maxSlack
	from, until = max(-limit, min(limit, from)), max(-limit, min(limit, until))
	return model.TimeRange{Min: from * nanosPerSecond, Max: (until+1)*nanosPerSecond - 1}
}

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// nameOf returns the name of a series in Graphite's form, and its tags.
func nameOf(l model.Labels) (string, map[string]string) {
	metric := string(l.Get(nameLabel))
	tags := make(map[string]string, l.Len())
	for rest := l; ; {
		name, value, next, ok := rest.Next()
		if !ok {
			break
		}
		switch tag := string(name); tag {
		case nameLabel:
		case "name":
			tags["exported_name"] = string(value)
		default:
			tags[tag] = string(value)
		}
		rest = next
	}
	tags["name"] = strings.TrimLeft(metric, "~")
	return series.FormatTags(metric, tags), tags
}

// byTags fetches the tagged series that satisfy the expressions of seriesByTag.
func (r *run) byTags(w *function.Window, n *syntax.Call) (series.List, error) {
	var expressions []string
	for _, a := range n.Args {
		if l, ok := a.(*syntax.Literal); ok {
			if s, ok := l.Value.(string); ok {
				expressions = append(expressions, s)
			}
		}
	}
	matchers, err := tagMatchers(expressions)
	if err != nil {
		return nil, err
	}
	return r.load(w, n.Raw, matchers, anyNumber)
}
