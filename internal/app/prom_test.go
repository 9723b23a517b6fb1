package app

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
)

func TestBuildInfoIsTheProgram(t *testing.T) {
	c := config.Config{Version: "1.2.3", Commit: "c0ffee"}
	v := promOptions(c, &Engine{}, &promEngine{}, apiOptions(c, prometheus.NewRegistry(), nil)).Version
	if v.Version != "1.2.3" || v.Revision != "c0ffee" || v.GoVersion != runtime.Version() {
		t.Errorf("got %+v", v)
	}
}

// The times of status/tsdb are those of the oldest and the newest sample that is not in the
// bucket.
func TestTSDBStatusHasTrueTimes(t *testing.T) {
	s := newSetup(t, nil)
	defer func() { must(t, s.Engine.Close()) }()
	second := int64(time.Second)
	begin := s.now - 60*second
	status := func() prom.TSDBStatus {
		t.Helper()
		got, err := s.Engine.counter().Status(context.Background(), "a", 10, &model.Quota{}, &model.Cost{})
		must(t, err)
		return got
	}
	want := func(series uint64, oldest, newest int64) {
		t.Helper()
		w := prom.HeadStats{NumSeries: series, NumLabelPairs: int(series), MinTime: oldest, MaxTime: newest}
		if d := cmp.Diff(w, status().HeadStats); d != "" {
			t.Error(d)
		}
	}
	want(0, prom.NoMinTime, prom.NoMaxTime)
	must(t, s.push("a", up, begin-90*second, 1))
	must(t, s.push("a", up, begin+30*second, 2))
	must(t, s.push("b", up, begin-500*second, 1))
	must(t, s.Flush())
	want(1, begin/1e6-90_000, begin/1e6+30_000)
	must(t, s.push("a", model.LabelsOf("__name__", "down"), begin+31*second, 1))
	want(2, begin/1e6-90_000, begin/1e6+31_000)
	if d := cmp.Diff([]prom.Block{}, tsdbBlocks(s.Engine, "a")); d != "" {
		t.Error(d)
	}

	s.now += int64(4 * time.Hour)
	must(t, s.Ship())
	want(2, prom.NoMinTime, prom.NoMaxTime) // the series are active until they have been idle
	blocks := tsdbBlocks(s.Engine, "a")
	if len(blocks) == 0 {
		t.Fatal("no blocks")
	}
	first, last := blocks[0].MinTime, blocks[len(blocks)-1].MaxTime
	if first != begin/1e6-500_000 || last != begin/1e6+31_001 {
		t.Errorf("the blocks are from %d to %d", first, last)
	}
	if got := tsdbBlocks(s.Engine, "c"); len(got) != 0 {
		t.Errorf("blocks of a tenant without samples: %v", got)
	}
}

// docs/prometheus-api.md says how exact the series, names and values of a time range are: series exactly
// while they are in the head, and by block in the bucket; names and values by head and block.
func TestSeriesOverPartOfTheTime(t *testing.T) {
	s := newSetup(t, nil)
	defer func() { must(t, s.Engine.Close()) }()
	second := int64(time.Second)
	begin := s.now - 600*second
	must(t, s.push("a", model.LabelsOf("__name__", "up", "job", "early"), begin, 1))
	must(t, s.push("a", model.LabelsOf("__name__", "up", "job", "late"), begin+300*second, 1))
	ctx := context.Background()
	found := func() (series, values int) {
		t.Helper()
		req := &model.Request{
			Tenant: "a", Signal: model.Metrics, Range: model.TimeRange{Min: begin - second, Max: begin + second}, LabelsOnly: true,
		}
		set, err := s.Querier().Select(ctx, req)
		must(t, err)
		for set.Next(ctx) {
			series++
		}
		must(t, set.Err())
		must(t, set.Close())
		names, _, err := s.Querier().LabelValues(ctx, req, "job", 0)
		must(t, err)
		return series, len(names)
	}
	want := func(when string, series, values int) {
		t.Helper()
		if gotSeries, gotValues := found(); gotSeries != series || gotValues != values {
			t.Errorf("%s: %d series and %d values, want %d and %d", when, gotSeries, gotValues, series, values)
		}
	}
	want("in buffers", 1, 2)
	must(t, s.Flush())
	want("in parts", 1, 2)
	s.now += int64(4 * time.Hour)
	must(t, s.Ship())
	want("in blocks", 2, 2)
}
