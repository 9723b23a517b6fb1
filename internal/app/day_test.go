package app

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
)

// TestDayOfManyTenants lets a day pass for many small tenants with the same ten series. At the end each
// tenant has its own values, and the number of objects in the bucket does not depend on the number of
// tenants.
func TestDayOfManyTenants(t *testing.T) {
	tenants := 10_000
	if testing.Short() {
		tenants = 300 / racetest.Fewer
	}
	s := newSetup(t, func(o *EngineOptions) {
		o.FS = vfs.NewMem() // a file system that can be crash-cloned copies a file at each sync
		b, err := bucketfs.New(o.FS, "/bucket")
		must(t, err)
		o.Bucket = b
		o.MemoryBytes = 512 << 20
		o.Head.Tenants = tenants
	})
	const series, step, steps = 10, time.Hour, 24
	b := &worldtest.Batch{Signal: model.Metrics}
	for i := range series {
		b.Series = append(b.Series, worldtest.Series{Labels: model.LabelsOf("__name__", "m", "i", fmt.Sprint(i))})
	}
	value := func(tenant, series, at int) uint64 { return math.Float64bits(float64(tenant*1000 + series*100 + at)) }
	for at := range steps {
		for n := range tenants {
			b.Tenant = fmt.Sprint("t", n)
			for i := range b.Series {
				b.Series[i].Rows = []worldtest.Row{worldtest.Float(s.now, value(n, i, at))}
			}
			must(t, pushBatch(s.Path(), b))
			if s.head.HalfFull() {
				must(t, s.Flush())
			}
		}
		s.now += int64(step)
		must(t, s.Flush())
		for more := true; more; {
			var err error
			more, err = s.head.Work(context.Background())
			must(t, err)
		}
		must(t, s.Compact(context.Background()))
	}
	s.now += int64(13 * time.Hour) // into the next day, when the day before is merged
	must(t, s.Ship())
	for range 3 {
		must(t, s.Compact(context.Background()))
		s.now += int64(time.Hour)
	}
	objects := 0
	must(t, s.o.Bucket.List(context.Background(), "", func(string, int64) error { objects++; return nil }))
	t.Logf("%d tenants, %d samples: %d objects in the bucket, %d blocks", tenants, tenants*series*steps, objects, len(s.catalog.Live()))
	if objects > 100 {
		t.Errorf("%d objects", objects)
	}
	for n := 0; n < tenants; n += 1 + tenants/1000 {
		got, err := ask(s.Engine, question{tenant: fmt.Sprint("t", n), signal: model.Metrics, family: model.Samples, rg: everything})
		must(t, err)
		if len(got) != series {
			t.Fatalf("tenant %d: %d series", n, len(got))
		}
		for i := range series {
			rows := got[worldtest.ID{Tenant: fmt.Sprint("t", n), Signal: model.Metrics, Labels: string(b.Series[i].Labels), Family: model.Samples}]
			if len(rows) != steps {
				t.Fatalf("tenant %d, series %d: %d rows", n, i, len(rows))
			}
			for at, x := range rows {
				if x.Bits != value(n, i, at) {
					t.Fatalf("tenant %d, series %d, row %d: %s", n, i, at, x)
				}
			}
		}
	}
	if got, err := ask(s.Engine, question{tenant: "nobody", signal: model.Metrics, family: model.Samples, rg: model.TimeRange{Max: math.MaxInt64}}); err != nil || len(got) != 0 {
		t.Errorf("a tenant that is not there: %v, %v", got, err)
	}
	must(t, s.Close())
	checkFolder(t, s.o.FS)
}
