package app

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/policy"
)

// TestRollupsOfGroups: points that rules keep for different times are dropped by the rule of their series,
// though rollups of other series of their day stand alone by then.
func TestRollupsOfGroups(t *testing.T) {
	p := policiesOf(t, someSchemas, someAggregations)
	s := newSetup(t, func(o *EngineOptions) {
		o.Rollups = func() *policy.Policies { return p }
		o.Retention = rulesOf(t, 2*day, `[{match: '{__name__=~"coarse.*[02468]"}', keep: 4d}]`)
	})
	s.now -= s.now % int64(day)
	begin := s.now
	step := func() {
		t.Helper()
		for i := range int64(24) {
			for name := range 10 {
				must(t, s.push("a", model.LabelsOf("__name__", fmt.Sprintf("coarse.n%d", name)), s.now, float64(i)))
			}
			s.now += int64(time.Hour)
		}
		must(t, s.Ship())
		s.now += int64(2 * time.Hour)
		s.compact(t)
		s.expire(t)
		s.now -= int64(2 * time.Hour)
	}
	for range 8 {
		step()
	}
	from := begin / int64(time.Second)
	list, _, err := s.renders(true, from-1, from+86400-1, "coarse.*")
	must(t, err)
	if len(list) != 10 {
		t.Errorf("%d names have rollups of the first day, want 10", len(list))
	}
	alone := map[string]int{}
	for _, b := range s.catalog.State().Rollups {
		if b.Alone {
			alone[b.Group]++
		}
	}
	if len(alone) != 2 {
		t.Errorf("rollups that stand alone by group: %v", alone)
	}
	for _, b := range s.catalog.Live() {
		keep := 2 * day
		if b.Group[0] == '4' {
			keep = 4 * day
		}
		if age := time.Duration(s.now - b.Range.Max); age > keep+day {
			t.Errorf("points of group %s stay for %s", b.Group, age)
		}
	}
	must(t, s.Close())
}

// TestUnrolledBlocksAreReadOnce: a block of which nothing is to be summed up is not read again after a
// restart, until the rules change.
func TestUnrolledBlocksAreReadOnce(t *testing.T) {
	files := policiesOf(t, someSchemas, someAggregations)
	s := newSetup(t, func(o *EngineOptions) {
		o.Registerer = prometheus.NewRegistry()
		o.Rollups = func() *policy.Policies { return files }
	})
	must(t, s.push("a", model.LabelsOf("__name__", "single.a"), s.now, 1))
	must(t, s.Ship())
	s.now += int64(2 * day)
	s.compact(t)
	if n := len(s.catalog.State().Unrolled); n != 1 {
		t.Fatalf("%d blocks are noted, want 1", n)
	}
	reopen := func() (waiting, read float64) {
		t.Helper()
		must(t, s.Close())
		r := prometheus.NewRegistry()
		s.o.Registerer = r
		var err error
		s.Engine, err = OpenEngine(context.Background(), s.o)
		must(t, err)
		s.compact(t)
		all, err := r.Gather()
		must(t, err)
		for _, f := range all {
			switch f.GetName() {
			case "shale_rollup_waiting_blocks":
				waiting = f.Metric[0].GetGauge().GetValue()
			case "shale_compact_read_bytes_total":
				read = f.Metric[0].GetCounter().GetValue()
			}
		}
		return waiting, read
	}
	if waiting, read := reopen(); waiting != 0 || read != 0 {
		t.Errorf("after a restart %g blocks wait and %g bytes were read", waiting, read)
	}
	files = policiesOf(t, "[all]\npattern = .*\nretentions = 60s:1d,1h:5y\n", someAggregations)
	if waiting, read := reopen(); waiting != 0 || read == 0 || len(s.catalog.State().Rollups) != 1 {
		t.Errorf("by other rules %g blocks wait, %g bytes were read and there are %d rollups", waiting, read, len(s.catalog.State().Rollups))
	}
	must(t, s.Close())
}
