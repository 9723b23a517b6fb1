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
