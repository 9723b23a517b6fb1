package victorialogs

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/streamtext"
	"github.com/shaledb/shale/internal/read/victorialogs/words"
)

// grouping divides streams by some of their fields: those that decide the labels that a reader looks at.
// VictoriaLogs then sends a row for each group and bucket in place of one for each stream and bucket.
type grouping struct {
	fields []string
	// groups has each combination of their values that a stream has, as a stream of these fields is spelled.
	groups map[string]bool
	saved  int  // how many more streams than groups the request selects
	plain  bool // they can be grouped
	failed bool // a row had another group
	learnt time.Time
}

// saves returns how many rows grouping saves, one of which is for a stream or group and a bucket.
func (g *grouping) saves(r model.TimeRange, b buckets) uint64 {
	return uint64(g.saved) * ((uint64(r.Max)-uint64(r.Min))/uint64(b.step) + 1)
}

const (
	// maxGroupFields bounds the fields of a grouping.
	maxGroupFields = 8
	// groupedRows is the number of rows, of a stream and a bucket each, that grouping must save: it takes longer
	// to list the streams than to send fewer.
	groupedRows = 2000
	// sparseLines is how many lines a stream has in a bucket at most if lines are counted by groups at once.
	sparseLines = 4
	// copiesPause is how long streams are not grouped after lines were there twice.
	copiesPause = 10 * time.Minute
)

// groupingOf lists the streams of a request, and returns how they are grouped. They are not if a name or a
// value might be cut out of the text of a stream in a wrong way. Nor are they if a stream lacks a label, so
// that metadata may be in its place.
func (d *directory) groupingOf(ctx context.Context) (*grouping, error) {
	k := &d.source.listings
	spellings, others, err := k.get(ctx, d)
	if err != nil {
		return nil, err
	}
	g, err := d.groupingBy(spellings)
	if !others || err == nil && g.plain {
		return g, err
	}
	// The reason may be a stream that the request does not select.
	k.setOwn(d.owner(ctx))
	if spellings, _, err = k.alone(ctx, d); err != nil {
		return nil, err
	}
	return d.groupingBy(spellings)
}

// groupingBy returns how some streams are grouped.
func (d *directory) groupingBy(spellings [][]byte) (*grouping, error) {
	decides := d.decides()
	g := &grouping{groups: map[string]bool{}, plain: true, learnt: time.Now()}
	for _, spelling := range spellings {
		err := streamtext.Each(spelling, func(name, _ []byte) error {
			g.plain = g.plain && isPlainField(name)
			if decides(name) && !slices.Contains(g.fields, string(name)) {
				g.fields = append(g.fields, string(name))
			}
			return nil
		})
		if err != nil {
			return g, err
		}
	}
	if g.plain = g.plain && len(g.fields) <= maxGroupFields; !g.plain {
		return g, nil
	}
	slices.Sort(g.fields)
	streams := map[string]int{} // by group
	values := make([][]byte, len(g.fields))
	for _, spelling := range spellings {
		clear(values)
		err := streamtext.Each(spelling, func(name, value []byte) error {
			if i, ok := slices.BinarySearch(g.fields, string(name)); ok {
				values[i] = value
			}
			return nil
		})
		if err != nil {
			return g, err
		}
		group := g.spelling(values)
		g.plain = g.plain && bytes.IndexByte(group, '\\') < 0 // or it would have to be unquoted there
		g.groups[string(group)] = true
		streams[string(group)]++
	}
	for group := range g.groups {
		st, err := d.source.streams.of([]byte(group))
		if err != nil {
			return g, err
		}
		if st != nil && !matches(d.req.Matchers, st.Labels) {
			continue
		}
		g.plain = g.plain && st != nil && hasAll(st.Labels, d.req.Cells.Labels)
		g.saved += streams[group] - 1
	}
	return g, nil
}

// decides returns what says whether a field has a part in the labels that the request looks at.
func (d *directory) decides() func(field []byte) bool {
	wanted := map[string]bool{}
	for _, name := range d.req.Cells.Labels {
		wanted[name] = true
	}
	for i := range d.req.Matchers { // which are checked here
		wanted[d.req.Matchers[i].Name] = true
	}
	if wanted[serviceName] {
		for _, name := range d.source.streams.rules.ServiceNames {
			wanted[name] = true
		}
	}
	return func(field []byte) bool {
		name, err := labelName(field)
		return err != nil || wanted[string(name)]
	}
}

// isPlainField reports whether the name of a field is one that stands for itself in the text of a stream, and
// in a pattern.
func isPlainField(name []byte) bool {
	for _, c := range name {
		if !words.IsByte(c) && c != '.' && c != '-' && c != '/' && c != ':' {
			return false
		}
	}
	return len(name) > 0
}

// spelling returns a stream of some values of the fields.
func (g *grouping) spelling(values [][]byte) []byte {
	b := []byte{'{'}
	for i, name := range g.fields {
		if len(values[i]) == 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, name...)
		b = append(b, '=')
		b = strconv.AppendQuote(b, string(values[i]))
	}
	return append(b, '}')
}

// pipes returns what makes groups of statistics of streams. A quote within a value of a stream has a
// backslash before it. So a comma, a name, an equals sign and a quote begin a field and nothing else.
func (g *grouping) pipes() string {
	var b strings.Builder
	b.WriteString(` | replace ("{", ",") at _stream limit 1`)
	for i, name := range g.fields {
		fmt.Fprintf(&b, " | extract %s from _stream", strconv.Quote(","+name+`="<plain:`+groupField(i)+`>"`))
	}
	return b.String()
}

func groupField(i int) string { return "g" + strconv.Itoa(i) }

// names returns the fields that the values of groups are in.
func (g *grouping) names() []string {
	all := make([]string, len(g.fields))
	for i := range all {
		all[i] = groupField(i)
	}
	return all
}

// of returns the group of a row, as a stream. ok is false if no stream had these values.
func (g *grouping) of(row []field) (spelling []byte, ok bool) {
	values := make([][]byte, len(g.fields))
	for i := range values {
		values[i] = valueOf(row, groupField(i))
	}
	spelling = g.spelling(values)
	return spelling, g.groups[string(spelling)]
}

// group counts lines by the labels that the request looks at. It reports whether that was possible. If not,
// lines have to be counted by streams: some are there twice, or a stream is new.
func (d *directory) group(ctx context.Context, b buckets) (ok bool, err error) {
	s := d.source
	if !d.req.Cells.Grouped || !b.counted || b.step == 0 || d.req.Horizon.MayHide(d.req.Range.Min) || time.Since(s.began) < time.Duration(s.noGroups.Load()) {
		return false, nil
	}
	// What was learnt of the streams for another range mostly holds. Otherwise a row has another group, or the
	// list below has other fields.
	key := groupingKey(d)
	g := s.groupings.get(key)
	if g == nil {
		var err error
		if g, err = d.groupingOf(ctx); err != nil {
			return false, err
		}
		s.groupings.put(key, g)
	}
	if !g.plain || g.saves(d.req.Range, b) < s.groupedRows {
		return false, nil
	}
	own := *g
	g = &own
	b.groups, b.early = g, d.isSparse(g, b)
	if err := d.ask(ctx, d.req.Range, b); err != nil || g.failed {
		s.groupings.put(key, nil)
		return false, err
	}
	for i := range d.cells {
		if c := &d.cells[i]; !c.certain || len(c.spellings) > 1 {
			s.noGroups.Store(int64(time.Since(s.began) + s.copiesPause))
			return false, nil
		}
	}
	// A field that is new since the streams were listed may have a part in the labels.
	after, err := d.groupingOf(ctx)
	if err != nil {
		return false, err
	}
	s.groupings.put(key, after)
	return after.plain && slices.Equal(g.fields, after.fields), nil
}

// isSparse reports whether a range has few lines for each stream and bucket. It then takes longer to add up
// what streams have than to find the group of each line.
func (d *directory) isSparse(g *grouping, b buckets) bool {
	most := d.source.sparseLines
	lines, ok := d.source.watch.Lines(d.account.Account, d.req.Range)
	return most == math.MaxUint64 || ok && uint64(lines) <= most*g.saves(d.req.Range, b)
}

// groupingKey says what a grouping depends on besides the range.
func groupingKey(d *directory) string {
	names := slices.Clone(d.req.Cells.Labels)
	for i := range d.req.Matchers {
		names = append(names, matcherText(&d.req.Matchers[i]))
	}
	return fmt.Sprintf("%v %q %q", d.account, d.filter, names)
}

// groupings are those of the last requests. It is safe for concurrent use.
type groupings struct {
	mu sync.Mutex
	of map[string]*grouping
	// kept is how many groups and entries there are.
	kept int
}

const (
	// maxGroupings bounds the groups that are kept. Beyond it, all are learnt again.
	maxGroupings = 20_000
	// groupingAge is how long a grouping is kept. An old one gives no wrong result, but may not group streams
	// that have become many.
	groupingAge = time.Minute
)

func (k *groupings) get(key string) *grouping {
	k.mu.Lock()
	defer k.mu.Unlock()
	if g := k.of[key]; g != nil && time.Since(g.learnt) < groupingAge {
		return g
	}
	return nil
}

// put keeps a grouping; nil drops it.
func (k *groupings) put(key string, g *grouping) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.of[key]; old != nil {
		k.kept -= len(old.groups) + 1
		delete(k.of, key)
	}
	if g == nil || len(g.groups) >= maxGroupings {
		return
	}
	if k.kept += len(g.groups) + 1; k.kept > maxGroupings || k.of == nil {
		k.of, k.kept = map[string]*grouping{}, len(g.groups)+1
	}
	k.of[key] = g
}

func hasAll(l model.Labels, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return l.Get(name) == nil })
}
