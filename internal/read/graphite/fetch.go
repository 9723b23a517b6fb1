package graphite

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
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
func (r *run) fetch(w *function.Window, path string) (series.List, error) {
	switch {
	case strings.Contains(path, ";"):
		tags, err := series.ParseTags(path)
		if err != nil {
			return nil, err
		}
		return r.load(w, path, selection{matchers: exactTags(tags), labels: len(tags), single: series.FormatTags(tags["name"], tags)})
	case !isGlob(path):
		return r.load(w, path, selection{matchers: []model.Matcher{equal(nameLabel, path)}, labels: 1, single: path})
	case r.o.Finder == nil:
		m, err := globMatcher(path)
		if err != nil {
			return nil, err
		}
		return r.load(w, path, selection{matchers: []model.Matcher{m}, labels: 1})
	}
	return r.load(w, path, selection{glob: path, labels: 1})
}

// nameLabel is the label that holds the name of a metric.
const nameLabel = "__name__"

// selection says which series a path or an expression of tags means.
type selection struct {
	matchers []model.Matcher
	labels   int    // that a series has; anyNumber: several
	glob     string // that the finder resolves; empty: none
	single   string // the name, if there is at most one series
}

// anyNumber lets series have any number of labels besides the name.
const anyNumber = 0

func (s *selection) has(l model.Labels) bool {
	n := l.Len()
	return n == s.labels || s.labels == anyNumber && n > 1
}

// load reads the series of a selection once for each window, and returns them sorted by name.
func (r *run) load(w *function.Window, expression string, s selection) (series.List, error) {
	key := fetchKey{expression, w.From, w.Until}
	all, known := r.cache[key]
	if !known {
		var err error
		if all, err = r.read(w, s); err != nil {
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

// read returns the series with rows in the window, and those without that are known from about the same
// time or from the last day: their values are missing, as in whisper, whose files stay. A graph of a rare
// event needs its name.
func (r *run) read(w *function.Window, s selection) ([]fetched, error) {
	now := r.q.Now.Unix()
	l := &layout{run: r, w: w, now: now, plans: make(map[string]*plan)}
	known := map[string]map[string]string{s.single: nil} // the tags of series by name; nil: those in the name
	var err error
	switch {
	case s.single != "":
	case s.glob != "":
		var names []string
		if names, err = r.expand(w, s.glob, now); err == nil {
			known = make(map[string]map[string]string, len(names))
			for _, n := range names {
				known[n] = nil
			}
			s.matchers = []model.Matcher{namesMatcher(s.glob, names)}
		}
	default:
		known, err = r.known(w, s, now)
	}
	if err != nil || len(known) == 0 {
		return nil, err
	}
	all, err := l.read(s, known)
	if err != nil {
		return nil, err
	}
	if s.single != "" && len(all) == 0 {
		if known, err = r.known(w, s, now); err != nil {
			return nil, err
		}
	}
	for i := range all {
		delete(known, all[i].name)
	}
	for _, name := range sortedKeys(known) {
		tags := known[name]
		if tags == nil {
			tags = map[string]string{"name": strings.TrimLeft(name, "~")}
		}
		if err := l.add(&all, name, tags, new(model.Rows)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// walk calls f for each series of a selection.
func (r *run) walk(w *function.Window, s selection, within model.TimeRange, labelsOnly bool, rollup *model.RollupRequest, f func(*read.SeriesSet) error) error {
	set, err := r.o.Read.Select(w, &model.Request{
		Tenant: r.q.Tenant, Signal: model.Metrics, Matchers: s.matchers, Range: within, LabelsOnly: labelsOnly, Rollup: rollup, Quota: r.q.Quota, Cost: r.q.Cost,
	})
	if err != nil {
		return err
	}
	for err == nil && set.Next(w) {
		if s.has(set.Labels()) {
			err = f(set)
		} else {
			err = r.q.Quota.TakeBytes(-set.Charged())
		}
	}
	if err == nil {
		err = set.Err()
	}
	if closing := set.Close(); err == nil {
		err = closing
	}
	return err
}

// memory is how long a name is known after its last sample.
const memory = 24 * 3600

// lookups returns the ranges in which names are looked for: the window with the day before it, and the last
// day. They are whole days of UTC, as settled blocks are: a block lists the names of its day, and rows that
// are not shipped yet must not give fewer.
func lookups(from, until, now int64) []model.TimeRange {
	ranges := []model.TimeRange{days(from-memory, until)}
	if until < now-memory {
		ranges = append(ranges, days(now-memory, now))
	}
	return ranges
}

// days is nanos for the whole days of UTC.
func days(from, until int64) model.TimeRange {
	const day = 24 * 3600
	return nanos(from-((from%day)+day)%day, until-((until%day)+day)%day+day-1)
}

// expand returns the names that satisfy a glob.
func (r *run) expand(w *function.Window, glob string, now int64) ([]string, error) {
	var all []string
	for _, within := range lookups(w.From, min(w.Until, now), now) {
		names, err := r.o.Finder.Expand(w, r.q, glob, within)
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// known returns the tags of all series of a selection by their names.
func (r *run) known(w *function.Window, s selection, now int64) (map[string]map[string]string, error) {
	all := make(map[string]map[string]string)
	var rollup *model.RollupRequest
	if r.rollups != "" {
		rollup = &model.RollupRequest{}
	}
	for _, within := range lookups(w.From, min(w.Until, now), now) {
		err := r.walk(w, s, within, true, rollup, func(set *read.SeriesSet) error {
			name, tags := nameOf(set.Labels())
			all[name] = tags
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

const nanosPerSecond = 1_000_000_000

// nanos returns the range of the rows of the slots in a window. Bounds saturate.
func nanos(from, until int64) model.TimeRange {
	const limit = math.MaxInt64/nanosPerSecond - 1
	from, until = max(-limit, min(limit, from)), max(-limit, min(limit, until))
	return model.TimeRange{Min: from * nanosPerSecond, Max: (until+1)*nanosPerSecond - 1}
}

// NameOf returns the name of a series in Graphite's form.
func NameOf(l model.Labels) string {
	name, _ := nameOf(l)
	return name
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
	matchers, late, err := tagMatchers(expressions)
	if err != nil {
		return nil, err
	}
	list, err := r.load(w, n.Raw, selection{matchers: matchers, labels: anyNumber})
	if err == nil {
		err = late()
	}
	return list, err
}
