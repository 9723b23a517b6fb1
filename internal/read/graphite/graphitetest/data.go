package graphitetest

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/read/graphite/series"
	"github.com/shaledb/shale/internal/read/readtest"
)

// Data are series in memory.
type Data struct {
	Series map[string]Series `json:"series"`
	Events []Event           `json:"events"`
}

// Series has a value for each step from its start; nil: there is none.
type Series struct {
	Start  int64      `json:"start"`
	Step   int64      `json:"step"`
	Values []*float64 `json:"values"`
}

// Event is a time with tags.
type Event [2]any

// Labels returns the labels of a name with tags.
func Labels(name string) (model.Labels, error) {
	tags, err := series.ParseTags(name)
	if err != nil {
		return nil, err
	}
	metric, _, _ := strings.Cut(name, ";")
	pairs := []string{"__name__", metric}
	for tag, value := range tags {
		if tag != "name" {
			pairs = append(pairs, tag, value)
		}
	}
	return model.LabelsOf(pairs...), nil
}

// keep is how long the series are kept, in seconds: longer than any window.
const keep = 50 * 365 * 86400

// Engine returns an engine over the data.
func Engine(d *Data) (*graphite.Engine, error) {
	source := readtest.NewMemory(1)
	for name, s := range d.Series {
		l, err := Labels(name)
		if err != nil {
			return nil, err
		}
		var rows model.Rows
		for i, v := range s.Values {
			if v != nil {
				rows.Append((s.Start+int64(i)*s.Step)*1e9, math.Float64bits(*v), 0)
			}
		}
		source.Add(model.DefaultTenant, l.Key(0, model.Metrics), l, &rows)
	}
	of := func(name string) (policy.Policy, error) {
		step := max(1, d.Series[name].Step)
		return policy.Policy{Archives: []policy.Archive{{Step: step, Points: keep / step}}}, nil
	}
	return graphite.New(graphite.Options{
		Read: read.New(read.Options{Sources: []read.Source{source}}), Policies: func() func(string) (policy.Policy, error) { return of },
		Events: func(_ context.Context, _ *graphite.Query, from, until int64, tags []string) ([]int64, error) {
			return d.events(from, until, tags), nil
		},
	}), nil
}

func (d *Data) events(from, until int64, tags []string) (times []int64) {
	for _, e := range d.Events {
		at := int64(e[0].(float64))
		var has []string
		for _, t := range e[1].([]any) {
			has = append(has, t.(string))
		}
		missing := slices.ContainsFunc(tags, func(t string) bool { return !slices.Contains(has, t) })
		if at >= from && at <= until && !missing {
			times = append(times, at)
		}
	}
	return times
}

// Answer is a status and a body.
type Answer struct {
	Status int
	Body   string
}
