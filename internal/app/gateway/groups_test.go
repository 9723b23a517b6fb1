package gateway

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

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

// TestGroupSums: sums that are kept by differences are those of all partitions, also while ingesters have
// different label sets and come and go.
func TestGroupSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroupCounts()
		now := time.Unix(1000, 0)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "seconds")) * time.Second)
			number := rapid.Int32Range(0, 4).Draw(t, "partition")
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0:
				g.drop(number)
			case 1:
				g.expire(now)
			default:
				r := &state.Groups{Partition: state.Partition{Epoch: 1, Number: number}, Tenants: map[string]state.TenantGroups{}}
				for range rapid.IntRange(0, 3).Draw(t, "tenants") {
					of := state.TenantGroups{Metrics: map[string]int64{}, Text: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "text")}
					for range rapid.IntRange(0, 3).Draw(t, "metrics") {
						of.Metrics[rapid.SampledFrom([]string{"m", "n", "o"}).Draw(t, "metric")] = rapid.Int64Range(1, 9).Draw(t, "n")
					}
					for range rapid.IntRange(0, 3).Draw(t, "sets") {
						of.Sets = append(of.Sets, rapid.Int64Range(0, 9).Draw(t, "of set"))
					}
					r.Tenants[rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant")] = of
				}
				g.take(r, now)
				for tenant, of := range r.Tenants {
					if g.sum[tenant].last != of.Text {
						t.Fatalf("tenant %s: label sets of %q count, and those of %q came last", tenant, g.sum[tenant].last, of.Text)
					}
				}
			}
			for _, tenant := range []string{"a", "b"} {
				metrics, sets, texts := map[string]int64{}, map[string][]int64{}, map[string]bool{}
				for _, c := range g.of {
					of, ok := c.Tenants[tenant]
					if !ok {
						continue
					}
					texts[of.Text] = true
					for name, n := range of.Metrics {
						metrics[name] += n
					}
					for i, n := range of.Sets {
						if i == len(sets[of.Text]) {
							sets[of.Text] = append(sets[of.Text], 0)
						}
						sets[of.Text][i] += n
					}
				}
				sum := g.sum[tenant]
				if sum == nil {
					if len(texts) > 0 {
						t.Fatalf("tenant %s has no sums", tenant)
					}
					continue
				}
				if !maps.Equal(sum.metrics, metrics) || !texts[sum.last] || sum.sets[sum.last] == nil {
					t.Fatalf("tenant %s: %v of %v, want %v of one of %v", tenant, sum.metrics, sum.last, metrics, texts)
				}
				for text, of := range sum.sets {
					kept := of.numbers
					for len(kept) > len(sets[text]) && kept[len(kept)-1] == 0 {
						kept = kept[:len(kept)-1]
					}
					if !slices.Equal(kept, sets[text]) {
						t.Fatalf("tenant %s, %q: %v, want %v", tenant, text, kept, sets[text])
					}
				}
			}
		}
	})
}
