package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/graphite/policy"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/compact"
	"github.com/shaledb/shale/internal/store/part"
	namesOf "github.com/shaledb/shale/internal/store/part/series"
)

// pushNames writes a sample of each of so many names of Graphite.
func (s *setup) pushNames(t *testing.T, n int) {
	t.Helper()
	b := s.Path().Batch("a", model.Metrics)
	defer s.Path().Recycle(b)
	var all manySeries
	for i := range n {
		l := model.LabelsOf("__name__", fmt.Sprintf("coarse.%03d.%03d", i/1000, i%1000))
		all = append(all, l)
		b.AddSample(l.Key(s.Path().Seed(), model.Metrics), s.now, math.Float64bits(float64(i)))
	}
	b.Source = all
	res, err := s.Path().Push(context.Background(), b)
	if must(t, err); len(res.Rejected) > 0 {
		t.Fatal(res.Rejected)
	}
}

// versions returns the newest versions of commit records and of visible blocks.
func (s *setup) versions(t *testing.T) (records int, format uint32) {
	t.Helper()
	for _, name := range s.objectsOf(t, catalog.RecordPrefix) {
		data, err := s.o.Bucket.Get(t.Context(), name)
		must(t, err)
		var r struct{ Version int }
		must(t, json.NewDecoder(bytes.NewReader(data[bytes.IndexByte(data, '{'):])).Decode(&r))
		records = max(records, r.Version)
	}
	for _, b := range s.catalog.State().Blocks {
		data, err := s.o.Bucket.Get(t.Context(), catalog.ObjectName(b.ID))
		must(t, err)
		r, err := part.Open(t.Context(), bytes.NewReader(data), int64(len(data)))
		must(t, err)
		format = max(format, r.Version())
	}
	return records, format
}

// TestPlain: below journal-version 4, a block of many names of Graphite is one that programs of before read,
// and there are no rollups, for which expired points wait. A process of version 4 makes both.
func TestPlain(t *testing.T) {
	racetest.SkipSerial(t)
	for plain, want := range map[bool]struct {
		records, rollups int
		format           uint32
	}{true: {2, 0, 2}, false: {3, 1, 3}} {
		p := policiesOf(t, someSchemas, "[all]\npattern = .*\nxFilesFactor = 0\naggregationMethod = last\n")
		s := newSetup(t, func(o *EngineOptions) {
			o.Plain, o.Retention = plain, keeping(4*day)
			o.Rollups = func() *policy.Policies { return p }
		})
		t.Cleanup(func() { must(t, s.Close()) })
		is := func(when string) {
			t.Helper()
			records, format := s.versions(t)
			if n := len(s.catalog.State().Rollups); records != want.records || format != want.format || n != want.rollups {
				t.Errorf("plain %t, %s: records of version %d, blocks of version %d, %d rollups; want %+v", plain, when, records, format, n, want)
			}
		}
		for range 2 {
			s.pushNames(t, namesOf.LeastNames+1000)
			must(t, s.Ship())
			s.now += int64(time.Hour)
		}
		s.now += int64(2 * day)
		s.compact(t)
		is("after a merge")
		if !plain {
			continue
		}
		s.now += int64(20 * day) // more than a week of whole runs
		s.compact(t)
		(&rolled{setup: s, t: t}).expireRows()
		is("once all points have expired")
		c, err := compact.New(compact.Options{
			Catalog: s.catalog, Bucket: s.o.Bucket, FS: s.o.FS, Dir: "/data/upgraded", Seed: s.Path().Seed(),
			Retention: s.rules, Rollups: s.rollups, Now: func() int64 { return s.now },
		})
		must(t, err)
		_, err = c.RunOnce(t.Context())
		must(t, err)
		if n := len(s.catalog.State().Rollups); n != 1 {
			t.Errorf("%d rollups after the upgrade", n)
		}
	}
}
