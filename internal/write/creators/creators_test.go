package creators

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// batch has new series of a metric, or of a service.
func batch(tenant string, s model.Signal, name string, n int) *model.Batch {
	b := &model.Batch{Tenant: tenant, Signal: s}
	label := model.NameLabel
	if s == model.Logs {
		label = streamLabel
	}
	for i := range n {
		b.Labels.Append(uint32(i), model.LabelsOf(label, name, "i", fmt.Sprint(i)))
	}
	return b
}

func TestCreators(t *testing.T) {
	mem, now := vfs.NewCrashableMem(), time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	open := func() *Table {
		return Open(Options{FS: mem, Dir: "/creators", Now: func() int64 { return now.UnixNano() }, Registerer: prometheus.NewRegistry()})
	}
	c := open()
	c.Observe(batch("a", model.Metrics, "up", 3))
	c.Observe(batch("a", model.Metrics, "down", 5))
	c.Observe(batch("a", model.Logs, "web", 2))
	c.Observe(batch("b", model.Metrics, "up", 1))
	now = now.Add(7 * time.Minute)
	got, over := c.Now("a", model.Metrics, 1)
	if want := (Counts{8, 0, []Created{{"down", 5}}}); !reflect.DeepEqual(got, want) || over != 7*time.Minute {
		t.Errorf("%+v in %s", got, over)
	}
	if got, _ := c.Now("a", model.Logs, 5); got.Series != 2 || got.Names[0] != (Created{"web", 2}) {
		t.Errorf("logs: %+v", got)
	}
	// Periods are forgotten, and days are not.
	now = now.Add(25 * time.Minute)
	if got, _ := c.Now("a", model.Metrics, 5); got.Series != 0 {
		t.Errorf("long after: %+v", got)
	}
	c.Save()
	mem = mem.CrashClone(vfs.CrashCloneCfg{})
	c = open()
	c.Observe(batch("a", model.Metrics, "up", 4))
	now = now.AddDate(0, 0, 1)
	c.Observe(batch("a", model.Metrics, "next", 1))
	c.Save()
	days, err := c.Days(context.Background(), "a", model.Metrics, "2026-11-01", "2026-12-01", 9)
	want := []Day{{"2026-11-26", Counts{1, 0, []Created{{"next", 1}}}}, {"2026-11-25", Counts{12, 0, []Created{{"up", 7}, {"down", 5}}}}}
	if err != nil || !reflect.DeepEqual(days, want) {
		t.Errorf("%+v, %v", days, err)
	}
	if days, _ := c.Days(context.Background(), "a", model.Metrics, "2026-11-26", "2026-11-26", 9); len(days) != 1 {
		t.Errorf("one day: %+v", days)
	}
	now = now.AddDate(0, 0, KeepDays)
	c.Observe(batch("a", model.Metrics, "later", 1))
	c.Save()
	if days, _ := c.folder.List(); len(days) != 2 {
		t.Errorf("after %d days: %v", KeepDays, days)
	}
}

// A flood of names and of tenants takes bounded memory, and the counts stay right within their error.
func TestCreatorsAreBounded(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	mem := vfs.NewMem()
	o := Options{FS: mem, Dir: "/c", Now: func() int64 { return now.UnixNano() }}
	c := Open(o)
	var done sync.WaitGroup
	for g := range 4 {
		done.Go(func() {
			for i := range 500 {
				c.Observe(batch(fmt.Sprint("t", i), model.Metrics, fmt.Sprint("m", g, i), 1))
				c.Observe(batch("greedy", model.Metrics, fmt.Sprint("x", g, i), 1))
				c.Observe(batch("greedy", model.Metrics, "often", 1))
			}
		})
	}
	done.Wait()
	if n := len(c.tenants); n > maxTenants+1 {
		t.Errorf("%d tenants", n)
	}
	check := func(when string) {
		got, err := c.Days(context.Background(), "greedy", model.Metrics, "2026-11-25", "2026-11-25", 1000)
		if err != nil || len(got) != 1 || got[0].Series != 4000 || len(got[0].Names) > perDay || got[0].Names[0].Name != "often" ||
			got[0].Names[0].Series > 2000 || got[0].Names[0].Series+got[0].Undercount < 2000 {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
	check("before a restart")
	c.Save()
	c = Open(o)
	check("after a restart")
}

func TestADayThatIsOverStaysSo(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	c := Open(Options{FS: vfs.NewMem(), Dir: "/c", Now: func() int64 { return now.UnixNano() }})
	c.Observe(batch("a", model.Metrics, "up", 3))
	c.Save()
	now = now.AddDate(0, 0, 1)
	c.Observe(batch("a", model.Metrics, "up", 5))
	now = now.AddDate(0, 0, -1) // the clock steps back
	c.Observe(batch("a", model.Metrics, "up", 1))
	c.Save()
	for day, want := range map[string]uint64{"2026-11-25": 3, "2026-11-26": 6} {
		if d, err := c.load(day); err != nil || d["a"][0].Series != want {
			t.Errorf("%s: %+v, %v", day, d, err)
		}
	}
}

// A tenant with the name that older files have for all others does not see what these create.
func TestTenantNamedOther(t *testing.T) {
	if model.CheckTenant(otherTenants) == nil || model.CheckTenant(olderOthers) != nil {
		t.Error("a tenant can have the name of the shared list")
	}
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	o := Options{FS: vfs.NewMem(), Dir: "/c", Now: func() int64 { return now.UnixNano() }}
	series := func(c *Table) uint64 {
		t.Helper()
		sum := uint64(0)
		days, err := c.Days(context.Background(), olderOthers, model.Metrics, "2026-11-01", "2026-12-01", 9)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range days {
			sum += d.Series
		}
		return sum
	}
	c := Open(o)
	c.Observe(batch(olderOthers, model.Metrics, "own", 2))
	c.Save()
	c = Open(o) // with a file in which no tenant shares
	for i := range maxTenants + 3 {
		c.Observe(batch(fmt.Sprint("t", i), model.Metrics, "secret", 1))
	}
	if n, _ := c.Now(olderOthers, model.Metrics, 9); n.Series != 0 || series(c) != 2 {
		t.Errorf("now %+v, today %d", n, series(c))
	}
	c.Save()
	if c = Open(o); series(c) != 2 || c.tenants[otherTenants] == nil {
		t.Errorf("after a restart: %d", series(c))
	}
	now = now.AddDate(0, 0, 1)
	old := Counts{Series: 7, Names: []Created{{"secret", 7}}}
	if err := c.folder.Save("2026-11-26", document{olderOthers: {old, {}}}); err != nil {
		t.Fatal(err)
	}
	if c = Open(o); series(c) != 2 || c.tenants[otherTenants].today[0].Total() != 7 {
		t.Errorf("with an older file: %d", series(c))
	}
}
