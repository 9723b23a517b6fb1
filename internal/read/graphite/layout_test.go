package graphite_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/read/readtest"
)

// A window beyond the finest archive has the step of the next one, whose values are made when they are
// read. A name without samples in the window is a line of gaps for a day, also where a glob finds it.
func TestPoliciesApplyAtRead(t *testing.T) {
	const now = 1_700_002_800
	source := readtest.NewMemory(1)
	l := model.LabelsOf("__name__", "a.b")
	var rows model.Rows
	for i := range int64(7200 / 10) {
		rows.Append((now-7200+i*10)*1e9, math.Float64bits(float64(i)), 0)
	}
	source.Add(model.DefaultTenant, l.Key(0, model.Metrics), l, &rows)
	two := policy.Policy{Archives: []policy.Archive{{Step: 10, Points: 360}, {Step: 60, Points: 7 * 1440}}, Method: policy.Max}
	e := graphite.New(graphite.Options{
		Read: read.New(read.Options{Sources: []read.Source{source}}),
		Policies: func() func(string) (policy.Policy, error) {
			return func(string) (policy.Policy, error) { return two, nil }
		},
	})
	for _, c := range []struct {
		target      string
		from, until int64
		want        string
	}{
		{"a.b", now - 30, now, "a.b 10: [718 719 gap]"},
		{"a.*", now - 7200, now - 7080, "a.b 60: [11 17]"},
		{"a.b", now + 3600 - 60, now + 3600, ""},
		{"a.{b,c}", now - 7*86400, now - 7*86400 + 120, "a.b 60: [gap gap]"},
		{"movingMax(a.b,'1min')", now - 20, now, "movingMax(a.b,\"1min\") 10: [719 719]"},
		{"timeShift(a.b,'1h')|scale(2)", now - 120, now, "scale(timeShift(a.b, \"-1h\"),2) 60: [718 730]"},
	} {
		list, err := e.Render(context.Background(), &graphite.Query{
			Tenant: model.DefaultTenant, Targets: []string{c.target}, From: c.from, Until: c.until, Now: time.Unix(now, 0).UTC(),
			Quota: new(model.Quota), Cost: new(model.Cost),
		})
		got := ""
		for _, s := range list {
			var texts []any
			for _, v := range s.Values {
				if math.IsNaN(v) {
					texts = append(texts, "gap")
				} else {
					texts = append(texts, v)
				}
			}
			got += fmt.Sprintf("%s %d: %v", s.Name, s.Step, texts)
		}
		if err != nil || got != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.target, got, err, c.want)
		}
	}
	if source.Open() != 0 {
		t.Errorf("%d cursors are open", source.Open())
	}
}
