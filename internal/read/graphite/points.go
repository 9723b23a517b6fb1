package graphite

import (
	"context"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// Points returns the values that one path has in the window of a query, on the grid of its policy. No letter
// of the path has a meaning of its own. Times are in Unix seconds.
func (e *Engine) Points(ctx context.Context, q *Query, path string) (times []int64, values []float64, err error) {
	s := selection{matchers: []model.Matcher{equal(nameLabel, path)}, labels: 1, single: path}
	if strings.Contains(path, ";") {
		tags, err := series.ParseTags(path)
		if err != nil {
			return nil, nil, err
		}
		s = selection{matchers: exactTags(tags), labels: len(tags), single: series.FormatTags(tags["name"], tags)}
	}
	r := e.newRun(q)
	list, err := r.load(&function.Window{Context: ctx, From: q.From, Until: q.Until, Now: q.Now}, path, s)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range list {
		for i, v := range one.Values {
			if v == v {
				times, values = append(times, one.Start+int64(i)*one.Step), append(values, v)
			}
		}
	}
	return times, values, nil
}

// Method returns how points of a path are consolidated, as storage-aggregation.conf says.
func (e *Engine) Method(path string) (string, error) {
	p, err := e.o.Policies()(path)
	return p.Method.String(), err
}
