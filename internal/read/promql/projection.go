package promql

import (
	"bytes"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/model"
)

// projection is the labels that the engine looks at, where it does not look at all: a selector right below an
// aggregation by labels is asked for those, to group, and for the name of the metric, for warnings. Building
// the labels of a million series for count(m) took a quarter of its CPU and 600 MB.
//
// The engine says so in its hints: By is set only if the aggregation is the selector's parent
// (extractGroupsFromPath in its engine.go), so that nothing comes between that compares whole label sets, as
// a sign or a function does, and Func is then the aggregation. Series remain as many as they are, in their
// order, each with its samples.
type projection struct {
	quota *model.Quota // is charged for the labels that are made
	names [][]byte     // sorted
	// What was made for the series before is right for this one if the labels that count are the same:
	// neighbours in key order share name and job.
	last   labels.Labels
	values [][]byte
	any    bool
}

// projectionOf returns the projection that the hints allow, or nil.
func projectionOf(hints *storage.SelectHints, quota *model.Quota) *projection {
	if hints == nil || !hints.By || hints.ShardCount > 0 {
		return nil
	}
	switch hints.Func {
	case "sum", "avg", "count", "min", "max", "group", "stddev", "stdvar", "quantile":
	default:
		// The others give back series that they were given, or look at all of their labels.
		return nil
	}
	p := &projection{quota: quota, names: [][]byte{[]byte(model.NameLabel)}}
	for _, name := range hints.Grouping {
		p.names = append(p.names, []byte(name))
	}
	slices.SortFunc(p.names, bytes.Compare)
	p.names = slices.CompactFunc(p.names, bytes.Equal)
	p.values = make([][]byte, len(p.names))
	return p
}

// labels returns those of the series' labels that count. Those behind them are not looked at.
func (p *projection) labels(b *labels.ScratchBuilder, l model.Labels) (labels.Labels, error) {
	same, at, rest := p.any, 0, l
	for at < len(p.names) {
		name, value, next, ok := rest.Next()
		if !ok {
			break
		}
		for at < len(p.names) && bytes.Compare(p.names[at], name) < 0 {
			same = same && len(p.values[at]) == 0
			p.values[at] = p.values[at][:0]
			at++
		}
		if at < len(p.names) && bytes.Equal(p.names[at], name) {
			same = same && bytes.Equal(p.values[at], value)
			p.values[at] = append(p.values[at][:0], value...)
			at++
		}
		rest = next
	}
	if at < len(p.names) && len(rest) != 0 {
		return malformed(l)
	}
	for ; at < len(p.names); at++ {
		same = same && len(p.values[at]) == 0
		p.values[at] = p.values[at][:0]
	}
	if same {
		return p.last, nil
	}
	b.Reset()
	bytes := 0
	for i, value := range p.values {
		if len(value) > 0 {
			b.Add(view(p.names[i]), view(value))
			bytes += len(p.names[i]) + len(value)
		}
	}
	if err := p.quota.TakeBytes(int64(bytes)); err != nil {
		return labels.EmptyLabels(), err
	}
	p.last, p.any = b.Labels(), true
	return p.last, nil
}
