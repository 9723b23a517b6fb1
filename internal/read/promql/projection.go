package promql

import (
	"bytes"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/model"
)

// projection is the set of labels that the engine reads, where it does not read all of them. A selector
// directly below an aggregation by labels needs only those labels, to group, and the name of the metric,
// for warnings. For count(m) over a million series, building all labels would be most of the memory of the
// query.
//
// The engine's hints say so. By is set only if the aggregation is the selector's parent
// (extractGroupsFromPath in its engine.go), and Func is then the aggregation. Nothing in between compares
// whole label sets, as a sign or a function would. The series, their number and their order do not change,
// nor do their samples.
type projection struct {
	quota *model.Quota // charged for the labels that are built
	names [][]byte     // sorted
	// The labels of the series before are reused if the labels that count are equal: neighbours in key order
	// share name and job.
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
		// The others return series of their input, or read all labels.
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

// labels returns the labels of the series that count. It does not parse those after the last name.
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
