package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/names"
	"github.com/shaledb/shale/internal/read/graphite/policy"
)

// TestNamesBeforeAndAfterShipping: the names without points in a window that a render shows as nulls are the
// same before their rows are shipped, after, and once the blocks are merged.
func TestNamesBeforeAndAfterShipping(t *testing.T) {
	p := policiesOf(t, "[all]\npattern = .*\nretentions = 60s:10d\n", "")
	s := newSetup(t, nil)
	begin := s.now / int64(day) * int64(day)
	at := func(hours int) int64 { return begin + int64(hours)*int64(time.Hour) }
	s.now = at(31)
	must(t, s.push("a", model.LabelsOf("__name__", "early.name"), at(1), 1))
	must(t, s.push("a", model.LabelsOf("__name__", "early.tags", "dc", "x"), at(1), 1))
	must(t, s.push("a", model.LabelsOf("__name__", "late.name"), at(30), 1))
	must(t, s.push("a", model.LabelsOf("__name__", "late.tags", "dc", "x"), at(30), 1))
	s.now = at(33)
	f := names.New(names.Options{From: s.Querier()})
	defer f.Close()
	show := func() string {
		var all []string
		for _, window := range [][2]int{{26, 27}, {31, 32}, {2, 3}} {
			for _, target := range []string{"early.name", "late.name", "*.name", "early.tags;dc=x", "seriesByTag('dc=x')"} {
				e := graphite.New(graphite.Options{Read: s.Querier(), Finder: nameFinder{f}, Policies: func() func(string) (policy.Policy, error) { return p.Of }})
				list, err := e.Render(t.Context(), &graphite.Query{
					Tenant: "a", Targets: []string{target}, From: at(window[0]) / 1e9, Until: at(window[1]) / 1e9, Now: time.Unix(0, s.now).UTC(), Quota: new(model.Quota), Cost: new(model.Cost),
				})
				must(t, err)
				var found []string
				for _, x := range list {
					found = append(found, x.Name)
				}
				slices.Sort(found)
				all = append(all, fmt.Sprintf("%v %s: %s", window, target, strings.Join(found, " ")))
			}
		}
		return strings.Join(all, "\n")
	}
	before := show()
	if !strings.Contains(before, "[26 27] early.name: early.name") || !strings.Contains(before, "[31 32] seriesByTag('dc=x'): early.tags;dc=x late.tags;dc=x") {
		t.Errorf("before rows are shipped:\n%s", before)
	}
	must(t, s.Ship())
	if shipped := show(); shipped != before {
		t.Errorf("before rows are shipped:\n%s\nafter:\n%s", before, shipped)
	}
	s.compact(t)
	if merged := show(); merged != before {
		t.Errorf("before rows are shipped:\n%s\nafter a merge:\n%s", before, merged)
	}
	must(t, s.Close())
}
