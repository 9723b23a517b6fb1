package logql

import (
	"cmp"
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// VolumeQuery asks for the bytes of streams by labels, in intervals of a range.
type VolumeQuery struct {
	// Selection is one selector, or none for all streams.
	Selection
	// Cuts divide the range into intervals: see [Engine.Volumes].
	Cuts []int64
	// Targets are the labels that make up a group. Only streams that have all of them count. Without targets,
	// the labels of the selector make up a group, and without a selector all labels.
	Targets []string
	// ByName makes a group of each label name instead, of the targets or else of all names. A stream counts in
	// the group of each of its labels.
	ByName bool
	// Limit is how many groups of an interval are kept: those of most bytes, and of equal ones the first by
	// name.
	Limit int
}

// VolumeGroup is the volume of a group of streams: its bytes in each interval in which it has lines.
type VolumeGroup struct {
	// Name is the text of the labels, or the name of a label.
	Name string
	// Series has the labels of the group: of a label name, that name with an empty value.
	vector.Series
}

// first returns the bytes of the first interval with lines.
func (g *VolumeGroup) first() float64 {
	for i, n := range g.Values {
		if g.Present.Has(i) {
			return n
		}
	}
	return 0
}

// VolumeBy returns the volumes of groups, in Loki's order: by the bytes of the first interval in which the
// group has lines, descending, and then by name. Groups stay charged until the quota is released.
func (e *Engine) VolumeBy(ctx context.Context, q *VolumeQuery) ([]VolumeGroup, error) {
	if err := e.read.TakeRange(q.Tenants, model.Logs, q.Range, q.Quota); err != nil {
		return nil, err
	}
	g := &volumeGroups{q: q, names: make(map[string]bool), groups: make(map[string]*VolumeGroup)}
	sel := q.Selection
	if len(sel.Selectors) > 0 {
		matchers := sel.Selectors[0].matchers
		for _, m := range matchers {
			g.names[m.Name] = true
		}
		sel.Selectors = []Selector{{slices.Clip(matchers)}}
	}
	if len(q.Targets) > 0 {
		if len(sel.Selectors) == 0 {
			sel.Selectors = []Selector{{}}
		}
		s := &sel.Selectors[0]
		for _, name := range q.Targets {
			if !g.names[name] {
				s.matchers = append(s.matchers, &syntax.Matcher{Matcher: model.Matcher{
					Name: name, Op: model.MatchNotEqual, Match: func(value string) bool { return value != "" },
				}})
			}
		}
		clear(g.names)
		for _, name := range q.Targets {
			g.names[name] = true
		}
	}
	g.all = len(sel.Selectors) == 0 || q.ByName && len(q.Targets) == 0
	if err := g.gather(ctx, e, &sel); err != nil {
		return nil, err
	}
	g.limit()
	return g.sorted(), nil
}

// volumeGroups gathers streams into groups.
type volumeGroups struct {
	q      *VolumeQuery
	names  map[string]bool // of the labels that count, unless all do
	all    bool
	groups map[string]*VolumeGroup
	labels []byte
	from   int // the interval of the range that is the first one of the streams that are added
}

const groupBytes = 200 // about what a group takes besides its name and its values

func (g *volumeGroups) add(v *StreamVolume) error {
	g.labels = g.labels[:0]
	for name, value, rest, ok := v.Labels.Next(); ok; name, value, rest, ok = rest.Next() {
		switch {
		case !g.all && !g.names[string(name)]:
		case g.q.ByName:
			g.labels = appendPair(g.labels[:0], name, nil)
			if err := g.addTo(v); err != nil {
				return err
			}
		default:
			g.labels = appendPair(g.labels, name, value)
		}
	}
	if g.q.ByName {
		return nil
	}
	return g.addTo(v)
}

// addTo adds the volume of a stream to the group of the current labels.
func (g *volumeGroups) addTo(v *StreamVolume) error {
	group, err := g.group(g.labels)
	if err != nil {
		return err
	}
	for i, n := range v.Intervals {
		if n.Lines > 0 {
			group.Values[g.from+v.First+i] += float64(n.Bytes)
			group.Present.Add(g.from + v.First + i)
		}
	}
	return nil
}

// group returns the group of some labels, which it makes if there is none.
func (g *volumeGroups) group(of []byte) (*VolumeGroup, error) {
	if group := g.groups[string(of)]; group != nil {
		return group, nil
	}
	n := len(g.q.Cuts) + 1
	if err := g.q.Quota.TakeBytes(int64(3*len(of)+9*n) + groupBytes); err != nil {
		return nil, err
	}
	labels := string(of)
	group := &VolumeGroup{Series: vector.Series{Labels: model.Labels(labels), Values: make([]float64, n), Present: vector.NewSet(n)}}
	group.Name = group.Labels.String()
	if g.q.ByName {
		name, _, _, _ := group.Labels.Next()
		group.Name = string(name)
	}
	g.groups[labels] = group
	return group, nil
}

// limit drops the value of each interval in which a group is not among those to be kept.
func (g *volumeGroups) limit() {
	if len(g.groups) <= g.q.Limit {
		return
	}
	var some []*VolumeGroup
	for i := range len(g.q.Cuts) + 1 {
		some = some[:0]
		for _, group := range g.groups {
			if group.Present.Has(i) {
				some = append(some, group)
			}
		}
		if len(some) <= g.q.Limit {
			continue
		}
		slices.SortFunc(some, func(a, b *VolumeGroup) int {
			return cmp.Or(cmp.Compare(b.Values[i], a.Values[i]), cmp.Compare(a.Name, b.Name))
		})
		for _, group := range some[g.q.Limit:] {
			group.Present.Remove(i)
		}
	}
}

// sorted returns the groups that have a value.
func (g *volumeGroups) sorted() []VolumeGroup {
	all := make([]VolumeGroup, 0, len(g.groups))
	for _, group := range g.groups {
		if group.Present.Len() > 0 {
			all = append(all, *group)
		}
	}
	slices.SortFunc(all, func(a, b VolumeGroup) int {
		return cmp.Or(cmp.Compare(b.first(), a.first()), cmp.Compare(a.Name, b.Name))
	})
	return all
}
