package part

import (
	"context"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/samples"
	"github.com/shaledb/shale/internal/store/part/series"
)

func TestRoundTrip(t *testing.T) {
	racetest.SkipSerial(t)
	rapid.Check(t, func(rt *rapid.T) {
		all := drawWorld(rt)
		o := testOptions(rapid.Bool().Draw(rt, "labels"), rapid.SampledFrom([]Compression{Fast, Dense}).Draw(rt, "level"))
		r, _ := writeSized(t, all, o, rapid.SampledFrom([]file.Sizes{formatSizes, tiny, tinyRuns}).Draw(rt, "sizes"))
		checkStream(t, r, all, o.Labels)
		parttest.Must(t, Check(context.Background(), r))
		checkKeys(t, rt, r, all)
		checkSamples(t, rt, r, all)
	})
}

func checkStream(t *testing.T, r *Reader, all []oneSeries, labels bool) {
	t.Helper()
	stream := r.Stream()
	for i := range all {
		s, err := stream.Next(context.Background())
		if s == nil {
			t.Fatalf("stream ends at %d of %d: %v", i, len(all), err)
		}
		if s.Tenant != all[i].tenant || s.Key != all[i].key || labels && string(s.Labels) != string(all[i].labels) || (s.Labels != nil) != labels {
			t.Fatalf("series %d is %s %s %s", i, s.Tenant, s.Key, s.Labels)
		}
		if !worldtest.SameRows(&s.Rows.Samples, &all[i].rows) {
			t.Fatalf("series %d: rows %v\nshould be %v", i, s.Rows, all[i].rows)
		}
		if !worldtest.SameRows(&s.Rows.Exemplars, &all[i].exemplars) {
			t.Fatalf("series %d: exemplars %v\nshould be %v", i, s.Rows.Exemplars, all[i].exemplars)
		}
	}
	if s, err := stream.Next(context.Background()); s != nil || err != nil {
		t.Fatalf("stream goes on: %v", err)
	}
}

func checkKeys(t *testing.T, rt *rapid.T, r *Reader, all []oneSeries) {
	t.Helper()
	ctx := context.Background()
	for _, tenant := range tenantNames(all) {
		c := r.Keys(ctx, tenant)
		var keys []model.Key
		var first uint32
		for i := range all {
			if all[i].tenant != tenant {
				continue
			}
			if len(keys) == 0 {
				first = uint32(i)
			}
			keys = append(keys, all[i].key)
			if !c.Next() || c.Key() != all[i].key || c.Rank() != uint32(i) {
				t.Fatalf("key %d: %v", i, c.Err())
			}
		}
		if c.Next() || c.Err() != nil {
			t.Fatalf("keys go on: %v", c.Err())
		}
		for range 5 {
			k := model.Key{Hi: rapid.Uint64().Draw(rt, "hi"), Lo: rapid.Uint64().Draw(rt, "lo")}
			if len(keys) > 0 && rapid.Bool().Draw(rt, "near") {
				k = rapid.SampledFrom(keys).Draw(rt, "key")
				k.Lo += uint64(rapid.IntRange(-1, 1).Draw(rt, "off"))
			}
			at := 0
			for at < len(keys) && keys[at].Less(k) {
				at++
			}
			if ok := c.SeekGE(k); ok != (at < len(keys)) || ok && (c.Key() != keys[at] || c.Rank() != first+uint32(at)) {
				t.Fatalf("seek %s: %t, should lead to %d: %v", k, ok, at, c.Err())
			}
		}
		checkFind(t, rt, r.Keys(ctx, tenant), keys, first)
		// The cursor that has walked, started again.
		if c.Enter(tenant) {
			checkFind(t, rt, c, keys, first)
		}
	}
}

// checkFind seeks some of a tenant's keys, and keys next to them, in order.
func checkFind(t *testing.T, rt *rapid.T, c *series.KeyCursor, keys []model.Key, first uint32) {
	t.Helper()
	sought := []model.Key{{}, {Hi: 1 << 60, Lo: 5}, {Hi: math.MaxUint64, Lo: 7}}
	one := rapid.IntRange(1, 40).Draw(rt, "one of")
	for i, k := range keys {
		if i%one == 0 {
			k.Lo += uint64(rapid.SampledFrom([]int{0, 0, 0, 1, -1}).Draw(rt, "beside"))
			sought = append(sought, k)
		}
	}
	slices.SortFunc(sought, model.Key.Compare)
	for _, k := range slices.Compact(sought) {
		at, has := slices.BinarySearchFunc(keys, k, model.Key.Compare)
		if c.Find(k) != has || has && (c.Key() != k || c.Rank() != first+uint32(at)) || c.Err() != nil {
			t.Fatalf("find %s among %d keys, of which the part has it: %t, as number %d: stands at %d: %v", k, len(keys), has, at, int(c.Rank())-int(first), c.Err())
		}
	}
}

func checkSamples(t *testing.T, rt *rapid.T, r *Reader, all []oneSeries) {
	t.Helper()
	if len(all) == 0 {
		return
	}
	for range 3 {
		rg := model.TimeRange{Min: rapid.Int64().Draw(rt, "min"), Max: rapid.Int64().Draw(rt, "max")}
		samples, exemplars := r.RowsAt(context.Background(), model.Samples, rg), r.RowsAt(context.Background(), model.Exemplars, rg)
		for range 10 {
			i := rapid.IntRange(0, len(all)-1).Draw(rt, "rank")
			checkHas(t, samples, rg, uint32(i), &all[i].rows)
			checkHas(t, exemplars, rg, uint32(i), &all[i].exemplars)
			checkRows(t, samples, rg, uint32(i), &all[i].rows)
			checkRows(t, exemplars, rg, uint32(i), &all[i].exemplars)
		}
	}
}

func checkHas(t *testing.T, c *samples.Cursor, rg model.TimeRange, rank uint32, rows *model.Rows) {
	t.Helper()
	has, err := c.Has(rank)
	parttest.Must(t, err)
	if want := slices.ContainsFunc(rows.Times, rg.Contains); has != want {
		t.Fatalf("rank %d has rows in %v: %t, of %v", rank, rg, has, rows.Times)
	}
}

func checkRows(t *testing.T, c *samples.Cursor, rg model.TimeRange, rank uint32, rows *model.Rows) {
	t.Helper()
	var got, want model.Rows
	parttest.Must(t, c.AppendRows(rank, &got))
	for k, at := range rows.Times {
		if rg.Contains(at) {
			want.AppendRows(rows, k, k+1)
		}
	}
	if !worldtest.SameRows(&got, &want) {
		t.Fatalf("rank %d in %v: %v, should be %v", rank, rg, got, want)
	}
}
