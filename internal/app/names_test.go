package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/read/graphite/names"
	"github.com/shaledb/shale/internal/store/deletion"
)

// findAll returns the names and branches of a tenant that satisfy a glob in a range, branches with a slash.
func findAll(t *testing.T, f *names.Finder, tenant, glob string, rg model.TimeRange) []string {
	t.Helper()
	found, err := f.Find(context.Background(), &names.Query{Tenant: tenant, Range: rg}, glob)
	must(t, err)
	out := make([]string, len(found))
	for i, m := range found {
		if out[i] = m.Path; !m.Leaf {
			out[i] += "/"
		}
	}
	return out
}

// TestNames: names are found wherever their series are, before and after indexes were made, and only those of
// series without further labels.
func TestNames(t *testing.T) {
	s := newSetup(t, func(o *EngineOptions) { o.MemoryBytes = 256 << 20 })
	f := names.New(names.Options{From: s.Querier(), Registerer: prometheus.NewRegistry()})
	r := rand.New(rand.NewPCG(3, 4))
	all := map[string][]string{}
	push := func(n int) {
		for _, tenant := range []string{"lone", "mixed"} {
			b := worldtest.Batch{Tenant: tenant, Signal: model.Metrics}
			add := func(pairs ...string) {
				b.Series = append(b.Series, worldtest.Series{Labels: model.LabelsOf(pairs...), Rows: []worldtest.Row{worldtest.Float(s.now, 1)}})
			}
			for range n {
				name := fmt.Sprintf("dc%d.host%d.cpu%d.idle", r.IntN(3), r.IntN(20), r.IntN(9))
				if !slices.Contains(all[tenant], name) {
					all[tenant] = append(all[tenant], name)
					add("__name__", name)
				}
				if tenant == "mixed" {
					add("__name__", fmt.Sprintf("dc%d.host%d.cpu%d.idle", r.IntN(4), r.IntN(20), r.IntN(9)), "a", "1")
					add("__name__", name, "zone", fmt.Sprint(r.IntN(2)))
				}
			}
			if tenant == "mixed" {
				add("__name__", "http_requests", "job", "a")
				add("a", "without a name")
			}
			must(t, pushBatch(s.Path(), &b))
		}
	}
	check := func(when string) {
		t.Helper()
		for tenant, list := range all {
			want := map[string]bool{}
			for _, name := range list {
				parts := strings.Split(name, ".")
				if strings.HasSuffix(parts[1], "7") || strings.HasSuffix(parts[1], "1") {
					want[name] = true
				}
			}
			got := findAll(t, f, tenant, "*.host*[71].*.idle", everything)
			for _, g := range got {
				if !want[g] {
					t.Fatalf("%s: tenant %s should not have %s", when, tenant, g)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%s: tenant %s: found %d names, want %d", when, tenant, len(got), len(want))
			}
			if got := findAll(t, f, tenant, "*", everything); !slices.Equal(got, []string{"dc0/", "dc1/", "dc2/"}) {
				t.Fatalf("%s: tenant %s: %v", when, tenant, got)
			}
			n := 0
			must(t, f.List(context.Background(), &names.Query{Tenant: tenant, Range: everything}, func([]byte) error { n++; return nil }))
			if n != len(list) {
				t.Fatalf("%s: tenant %s: listed %d names, want %d", when, tenant, n, len(list))
			}
		}
		if got := findAll(t, f, "none", "*", everything); len(got) != 0 {
			t.Fatalf("%s: a tenant without names has %v", when, got)
		}
	}
	for round := range 3 {
		push(60)
		check(fmt.Sprint("buffered ", round))
		must(t, s.Flush())
		check(fmt.Sprint("in parts ", round))
		if round == 1 {
			must(t, s.Ship())
			check("in the bucket")
			s.now += int64(24 * time.Hour)
		}
	}
	must(t, s.Ship())
	must(t, s.Compact(context.Background()))
	check("compacted")
	must(t, f.Close())
	must(t, s.Close())
}

// TestNamesOfTheTime: names without rows in the range of a query are not found, nor deleted ones.
func TestNamesOfTheTime(t *testing.T) {
	s := newSetup(t, nil)
	f := names.New(names.Options{From: s.Querier(), Registerer: prometheus.NewRegistry()})
	begin := s.now
	for day, name := range []string{"a.old", "a.middle", "a.young"} {
		s.now = begin + int64(day)*int64(48*time.Hour)
		must(t, s.push("t", model.LabelsOf("__name__", name), s.now, 1))
		must(t, s.Flush())
		if day < 2 {
			s.now += int64(6 * time.Hour)
			must(t, s.Ship())
		}
	}
	at := func(day int) model.TimeRange {
		from := begin + int64(day)*int64(48*time.Hour)
		return model.TimeRange{Min: from - int64(time.Hour), Max: from + int64(time.Hour)}
	}
	// In its time range, the head lists all names that it still knows.
	for day, want := range []string{"a.old", "a.middle", "a.middle a.old a.young"} {
		if got := findAll(t, f, "t", "a.*", at(day)); strings.Join(got, " ") != want {
			t.Errorf("day %d: %v, want %s", day, got, want)
		}
	}
	if got := findAll(t, f, "t", "*.*", everything); !slices.Equal(got, []string{"a.middle", "a.old", "a.young"}) {
		t.Errorf("at any time: %v", got)
	}
	for _, name := range []string{"a.old", "a.young"} {
		_, err := s.Delete(context.Background(), deletion.Deletion{
			Tenant: "t", Signal: model.Metrics, Range: everything, Matchers: []deletion.Matcher{{Name: "__name__", Value: name}},
		})
		must(t, err)
	}
	if got := findAll(t, f, "t", "a.*", everything); !slices.Equal(got, []string{"a.middle"}) {
		t.Errorf("after deletions: %v", got)
	}
	must(t, f.Close())
	must(t, s.Close())
}
