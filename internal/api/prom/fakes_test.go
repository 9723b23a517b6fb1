package prom_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"google.golang.org/protobuf/proto"

	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
)

// wired sets all options of the handler: fixed data for the tenant anonymous, and none for others.
func wired(o *prom.Options) {
	o.Metadata = fakeMetadata
	o.Exemplars = func(tenant string, q *model.Quota, _ *model.Cost) storage.ExemplarQueryable {
		return &fakeExemplars{tenant: tenant, quota: q}
	}
	o.Flags = func() map[string]string { return map[string]string{"retention": "30d", "memory": "<4 GiB>"} }
	o.Config = func() string { return "retention: 30d\nmemory: \"4GiB\"\n" }
	o.TSDB = func(_ context.Context, tenant string, limit int, q *model.Quota, c *model.Cost) (prom.TSDBStatus, error) {
		switch tenant {
		case "anonymous":
			c.Series.Add(7)
			if err := q.TakeSeries(7, 700); err != nil {
				return prom.TSDBStatus{}, err
			}
		case "failing":
			return prom.TSDBStatus{}, errors.New("no statistics")
		default:
			return prom.TSDBStatus{}, nil
		}
		return prom.TSDBStatus{
			HeadStats:               prom.HeadStats{NumSeries: 7, NumLabelPairs: 3, ChunkCount: 9, MinTime: -5, MaxTime: 1_000_000},
			SeriesCountByMetricName: []prom.TSDBStat{{Name: "up", Value: 5}, {Name: "temp", Value: 2}},
		}, nil
	}
	o.Blocks = func(tenant string) []prom.Block {
		if tenant != "anonymous" {
			return nil
		}
		return []prom.Block{{ID: "b1", MinTime: -5, MaxTime: 9, Stats: prom.BlockStats{NumSamples: 7, NumSeries: 2}, Compaction: prom.BlockCompaction{Level: 1}, Version: 1}}
	}
	o.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return []*dto.MetricFamily{{Name: proto.String("test"), Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: proto.Float64(3)}}}}}, nil
	})
	o.Runtime = func() prom.RuntimeInfo {
		return prom.RuntimeInfo{StartTime: time.Unix(900, 0).UTC(), CWD: "/data", Hostname: "h", ServerTime: now.UTC(), ReloadConfigSuccess: true, GoroutineCount: 7, GOMAXPROCS: 2, StorageRetention: "30d"}
	}
}

func fakeMetadata(tenant, family string, _ *model.Cost, emit func(string, model.Metadata) bool) error {
	if tenant == "failing" {
		return errors.New("no metadata")
	}
	if tenant != "anonymous" {
		return nil
	}
	for _, m := range []struct {
		family string
		model.Metadata
	}{
		{"up", model.Metadata{Type: "gauge", Help: "Whether a <target> is up."}},
		{"requests", model.Metadata{Type: "counter", Help: "Requests."}},
		{"requests", model.Metadata{Type: "counter", Help: "All \"requests\".", Unit: "requests"}},
		{"requests", model.Metadata{Type: "counter", Help: "Requests."}},
		{"latency.näme", model.Metadata{Type: "histogram", Unit: "seconds"}},
	} {
		if (family == "" || family == m.family) && !emit(m.family, m.Metadata) {
			return nil
		}
	}
	return nil
}

// fakeExemplars has three exemplars of two series.
type fakeExemplars struct {
	tenant string
	quota  *model.Quota
	ctx    context.Context
}

func (f *fakeExemplars) ExemplarQuerier(ctx context.Context) (storage.ExemplarQuerier, error) {
	if f.tenant == "closed" {
		return nil, model.ErrClosed
	}
	f.ctx = ctx
	return f, nil
}

func (f *fakeExemplars) Select(start, end int64, sets ...[]*labels.Matcher) ([]exemplar.QueryResult, error) {
	if f.tenant == "failing" {
		return nil, errors.New("no exemplars")
	}
	if f.tenant != "anonymous" {
		return nil, nil
	}
	var out []exemplar.QueryResult
	for _, r := range []exemplar.QueryResult{
		{SeriesLabels: labels.FromStrings("__name__", "requests", "job", "a"), Exemplars: []exemplar.Exemplar{
			{Labels: labels.FromStrings("trace_id", "x<1>"), Value: 1.5, Ts: 900_123, HasTs: true}, {Value: -1e-9, Ts: 950_000}}},
		{SeriesLabels: labels.FromStrings("__name__", "requests", "job", "b"), Exemplars: []exemplar.Exemplar{
			{Labels: labels.FromStrings("span", "s", "trace_id", "2"), Value: 7, Ts: 990_000}}},
	} {
		if !slices.ContainsFunc(sets, func(ms []*labels.Matcher) bool {
			return !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(r.SeriesLabels.Get(m.Name)) })
		}) {
			continue
		}
		r.Exemplars = slices.DeleteFunc(slices.Clone(r.Exemplars), func(e exemplar.Exemplar) bool { return e.Ts < start || e.Ts > end })
		if len(r.Exemplars) == 0 {
			continue
		}
		if err := f.quota.TakeSamples(int64(len(r.Exemplars))); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b exemplar.QueryResult) int { return cmp.Compare(a.SeriesLabels.Hash(), b.SeriesLabels.Hash()) })
	return out, nil
}
