package compact

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// fleet is many small tenants whose rows are a function of tenant, series and time.
type fleet struct {
	w       *world
	start   int64
	tenants int
	names   []string
	series  []model.Labels // the same of every tenant, by key
	keys    []model.Key
}

const (
	fleetSeries = 10
	fleetStep   = int64(15 * time.Minute)
	fleetWindow = int64(2 * time.Hour)
)

func newFleet(w *world, start int64, tenants int) *fleet {
	f := &fleet{w: w, start: start, tenants: tenants}
	for i := range tenants {
		f.names = append(f.names, fmt.Sprintf("tenant-%05d", i))
	}
	for i := range fleetSeries {
		f.series = append(f.series, model.LabelsOf("__name__", fmt.Sprint("metric_", i), "instance", "host-1:9100", "job", "node"))
	}
	slices.SortFunc(f.series, func(a, b model.Labels) int { return a.Key(seed, model.Metrics).Compare(b.Key(seed, model.Metrics)) })
	for _, l := range f.series {
		f.keys = append(f.keys, l.Key(seed, model.Metrics))
	}
	return f
}

// isLate says whether a row is sent again, changed, long after its window.
func isLate(tenant, series int, at int64) bool {
	return series == tenant%fleetSeries && (at/fleetStep+int64(tenant))%13 == 0
}

func fleetValue(tenant, series int, at int64, late bool) uint64 {
	v := float64(tenant)*10 + float64(series) + float64(at/fleetStep%100)
	if late {
		v = -v
	}
	return math.Float64bits(v)
}

// ship makes a block of all rows in a range that are late, or of all.
func (f *fleet) ship(t fataler, r model.TimeRange, late bool) {
	t.Helper()
	w := f.w
	w.seq++
	var buf bytes.Buffer
	pw := part.NewWriter(&buf, part.WriterOptions{
		Seed: seed, Signal: model.Metrics, Node: "n1", SeqLo: w.seq, SeqHi: w.seq, Labels: true, Level: part.Dense, Created: w.now,
	})
	var rows model.SeriesRows
	for i, name := range f.names {
		for k, l := range f.series {
			rows.Reset()
			for at := (r.Min + fleetStep - 1) / fleetStep * fleetStep; at <= r.Max; at += fleetStep {
				if !late || isLate(i, k, at) {
					rows.Samples.Append(at, fleetValue(i, k, at, late), 0)
				}
			}
			if rows.Len() == 0 {
				continue
			}
			if err := pw.Series(name, f.keys[k], l); err != nil {
				t.Fatal(err)
			}
			if err := pw.Rows(&rows); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, size, err := pw.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if m.Series == 0 {
		return
	}
	b := catalog.Block{
		ID:   catalog.BlockID("n1", 0, model.Metrics, catalog.DefaultGroup, m.Range, w.seq, w.seq, 0),
		Node: "n1", Signal: model.Metrics, SeqLo: w.seq, SeqHi: w.seq, Created: w.now, Range: m.Range, Series: m.Series,
		Samples: m.Samples, Bytes: size, KeyMin: f.keys[0], KeyMax: f.keys[fleetSeries-1],
	}
	for _, tenant := range m.Tenants {
		b.Tenants = append(b.Tenants, tenant.Name)
	}
	_, err = w.c.Ship(ctx, shipOf(w.c, b), func(ctx context.Context, _ string) error {
		return w.bucket.Put(ctx, catalog.ObjectName(b.ID), bytes.NewReader(buf.Bytes()), size)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// verify reads every row of every tenant.
func (f *fleet) verify(t fataler, until int64, lateUntil int64) (rows int) {
	t.Helper()
	last := make(map[int64]uint64)
	expect := func(tenant, series int) int {
		n := 0
		for at := f.start; at < until; at += fleetStep {
			late := isLate(tenant, series, at) && at < lateUntil
			if v, ok := last[at]; !ok || v != fleetValue(tenant, series, at, late) {
				t.Fatalf("tenant %d, series %d at %d: %v (%t)", tenant, series, at, math.Float64frombits(v), ok)
			}
			n++
		}
		if n != len(last) {
			t.Fatalf("tenant %d, series %d: %d rows, should be %d", tenant, series, len(last), n)
		}
		return n
	}
	var streams []part.Stream
	blocks := slices.Clone(f.w.c.Live())
	sortByOrder(blocks)
	for _, b := range blocks {
		data, err := f.w.bucket.Get(ctx, catalog.ObjectName(b.ID))
		if err != nil {
			t.Fatal(err)
		}
		r, err := part.Open(ctx, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, r.Stream())
	}
	seen := 0
	err := part.Merge(ctx, streams, func(tenant string, k model.Key, l model.Labels, r *model.SeriesRows, _ []part.Text) error {
		i, series := seen/fleetSeries, seen%fleetSeries
		if tenant != f.names[i] || k != f.keys[series] || !bytes.Equal(l, f.series[series]) {
			t.Fatalf("series %s %s of %s", k, l, tenant)
		}
		clear(last)
		for n, at := range r.Samples.Times {
			last[at] = r.Samples.Values[n]
		}
		rows += expect(i, series)
		seen++
		return nil
	}, part.MergeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if seen != f.tenants*fleetSeries {
		t.Fatalf("%d series", seen)
	}
	return rows
}

// TestDay lives through a day of many small tenants in simulated time: windows are shipped when they have
// ended, late rows every hour, and the compactor runs. Few objects are left, and every row of every tenant is
// right.
func TestDay(t *testing.T) {
	const tenants = fleetTenants
	w := newWorld(t, vfs.NewMem())
	if _, err := catalog.EnsureSeed(ctx, w.bucket); err != nil {
		t.Fatal(err)
	}
	start := 20_000 * int64(day)
	w.now = start
	f := newFleet(w, start, tenants)
	comp := w.compactor(t, w.c, nil)
	most, atTheEnd := 0, 0
	for w.now = start; w.now < start+5*int64(day); w.now += int64(10 * time.Minute) {
		since := w.now - start
		if since%fleetWindow == int64(10*time.Minute) && since > fleetWindow && since < 27*int64(time.Hour) {
			end := w.now - int64(10*time.Minute)
			f.ship(t, model.TimeRange{Min: end - fleetWindow, Max: end - 1}, false)
		}
		if since%int64(time.Hour) == int64(20*time.Minute) && since > fleetWindow && since < 28*int64(time.Hour) {
			// What comes late is of the hour that ended three hours ago.
			end := w.now - int64(20*time.Minute) - 3*int64(time.Hour)
			if r := (model.TimeRange{Min: end - int64(time.Hour), Max: end - 1}); r.Min >= start {
				f.ship(t, r, true)
			}
		}
		if since%int64(30*time.Minute) == 0 {
			if _, err := comp.RunOnce(ctx); err != nil {
				t.Fatal(err)
			}
			if most = max(most, len(objects(t, w.bucket))); since == int64(day)+2*int64(time.Hour) {
				atTheEnd = len(objects(t, w.bucket))
			}
		}
	}
	rows := f.verify(t, start+int64(day)+fleetWindow, start+int64(day))
	names := objects(t, w.bucket)
	t.Logf("%d tenants, %d rows: %d objects after the day, never more than %d, %d some days later\n%s", tenants, rows, atTheEnd, most, len(names), list(w.c))
	// Two days, each a block and its record, the seed, and the last ship, which stays.
	if atTheEnd > 100 || most > 100 || len(names) != 6 {
		t.Errorf("%d objects after the day, %d at most, in the end %v", atTheEnd, most, names)
	}
}
