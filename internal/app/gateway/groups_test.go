package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/groups"
)

// TestGroupLimits: new series of a metric, and of those that a selector matches, are refused by what
// ingesters have counted in all partitions and what the request has. Known series pass, and all do without a
// count. A reload counts at once, except for label sets that ingesters have not counted yet.
func TestGroupLimits(t *testing.T) {
	g := braked(t)
	s := g.series
	limits := &groups.Limits{Metric: 10}
	s.limits = func(tenant string) *groups.Limits {
		if tenant == "t" {
			return limits
		}
		return &groups.Limits{}
	}
	sets := func(text string) (l groups.LabelSets) {
		t.Helper()
		if err := l.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return l
	}
	// over pushes series that differ in their last label, of keys that no one knows but the first one.
	over := func(tenant, name, team string, n int) (refused []int, err error) {
		batch := &model.Batch{Tenant: tenant, Signal: model.Metrics}
		for i := range n {
			batch.Labels.Append(uint32(i), model.LabelsOf("__name__", name, "i", fmt.Sprint(i), "team", team))
			batch.EndSeries(model.Key{Hi: 1, Lo: uint64(i+1) << 8})
		}
		err = s.Over(t.Context(), batch, func(label int) { refused = append(refused, label) })
		return refused, err
	}
	want := func(what string, refused []int, err error, n int, texts ...string) {
		t.Helper()
		if len(refused) != n || (err != nil) != (n > 0) {
			t.Errorf("%s: %v are refused, %v", what, refused, err)
			return
		}
		for _, text := range texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v does not say %s", what, err, text)
			}
		}
	}
	count := func(number int32, metrics map[string]int64, ofSets ...int64) {
		p := state.Partition{Epoch: 1, Number: number}
		f := state.NewFilter(1)
		f.Add(1 << 8)
		s.take(&state.Series{Partition: p, Active: map[string]int64{"t": 1}, Known: map[string]state.Filter{"t": f}}, time.Now())
		s.takeGroups(&state.Groups{Partition: p, Tenants: map[string]state.TenantGroups{"t": {Metrics: metrics, Sets: ofSets, Text: limits.Sets.Text()}}}, time.Now())
	}
	up := groups.Name([]byte("up"))
	refused, err := over("t", "up", "a", 20)
	want("nothing is counted", refused, err, 0)
	count(0, map[string]int64{up: 3})
	count(1, map[string]int64{up: 5})
	refused, err = over("t", "up", "a", 5) // the first one is known, and two more have room
	want("a metric", refused, err, 2, "metric up of tenant t has 8 active series and may have 10", "refused 2 of 4 new series")
	var named *model.LimitError
	if !errors.As(err, &named) || !named.Tenant || named.Limit != groups.LimitMetricSeries || !slices.Equal(refused, []int{3, 4}) {
		t.Errorf("%v: %+v", refused, named)
	}
	refused, err = over("t", "down", "a", 5)
	want("another metric", refused, err, 0)
	refused, err = over("other", "up", "a", 5)
	want("another tenant", refused, err, 0)
	count(1, map[string]int64{up: 1})
	refused, err = over("t", "up", "a", 5)
	want("fewer are counted", refused, err, 0)
	limits = &groups.Limits{Metric: 4}
	refused, err = over("t", "up", "a", 5)
	want("a reload", refused, err, 4)

	limits = &groups.Limits{Sets: sets(`[{match: '{team="a"}', series: 7}]`)}
	refused, err = over("t", "up", "a", 5)
	want("label sets that are not counted yet", refused, err, 0)
	count(0, nil, 2)
	count(1, nil, 3)
	refused, err = over("t", "up", "a", 5)
	want("a label set", refused, err, 2, `{team="a"} of tenant t matches 5 active series and may match 7`)
	refused, err = over("t", "up", "b", 5)
	want("what it does not match", refused, err, 0)
	s.expire(time.Now().Add(2 * countAge))
	if len(s.groups.of)+len(s.groups.sum) > 0 {
		t.Errorf("old counts are kept: %+v", s.groups)
	}
}
