package app

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/read/graphite/graphitetest"
	"github.com/shaledb/shale/internal/read/graphite/policy"
)

// TestTargetsOverRollups: each target whose response of graphite-web is recorded gives the same over rollups
// as over the points that they were made of, by several methods.
func TestTargetsOverRollups(t *testing.T) {
	racetest.SkipSerial(t) // TestRollups and TestRendersDuringCompaction render, too
	schemas := "[all]\npattern = .*\nretentions = 60s:1d,5m:5y\n"
	methods := ""
	for pattern, method := range map[string]string{"^counter": "sum", "^weights": "max", "^a[.]": "min", "^disk": "last"} {
		methods += fmt.Sprintf("[%s]\npattern = %s\nxFilesFactor = 0.3\naggregationMethod = %s\n", method, pattern, method)
	}
	p := policiesOf(t, schemas, methods)
	s := newSetup(t, func(o *EngineOptions) { o.Rollups = func() *policy.Policies { return p } })
	begin := s.now / int64(day) * int64(day)
	s.now = begin + int64(3*day)
	shift := begin - (graphitetest.Base-50*3600)*1e9 // the points begin with a day
	shift -= shift % int64(day)
	for name, data := range graphitetest.NewWorld(1, 1, false).Data.Series {
		l, err := graphitetest.Labels(name)
		must(t, err)
		b := s.Path().Batch("a", model.Metrics)
		for i, v := range data.Values {
			if v != nil {
				b.Samples.Append((data.Start+int64(i)*data.Step)*1e9+shift, math.Float64bits(*v), 0)
			}
		}
		b.EndSeries(l.Key(s.Path().Seed(), model.Metrics))
		b.Source = manySeries{l}
		res, err := s.Path().Push(context.Background(), b)
		must(t, err)
		if len(res.Rejected) > 0 {
			t.Fatalf("%s: rejected %v", name, res.Rejected)
		}
		s.Path().Recycle(b)
	}
	must(t, s.Ship())
	s.now += int64(10 * day)
	s.compact(t)
	records, err := graphitetest.Load("../api/graphite/testdata/render.jsonl.gz")
	must(t, err)
	from := graphitetest.Base - 20*3600 + shift/1e9
	var rolls, raws int64
	same := 0
	for _, r := range records {
		v, err := url.ParseQuery(r.Query)
		must(t, err)
		target := v.Get("target")
		got, cost, failed := s.renders(true, from, from+20*3600, target)
		want, raw, refused := s.renders(false, from, from+20*3600, target)
		rolls, raws = rolls+cost.Samples.Load(), raws+raw.Samples.Load()
		if fmt.Sprint(failed) != fmt.Sprint(refused) {
			t.Errorf("%s: %v over rollups, %v over points", target, failed, refused)
			continue
		}
		if g, w := values(got), values(want); g != w {
			t.Errorf("%s: %s", target, firstDiff(g, w))
		} else if len(got) > 0 {
			same++
		}
	}
	t.Logf("%d targets with series; %d rows of rollups, %d of points", same, rolls, raws)
	if same < 1000 || rolls > raws/3 {
		t.Errorf("%d targets with series; %d rows of rollups, %d of points", same, rolls, raws)
	}
	must(t, s.Close())
}
