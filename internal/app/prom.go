package app

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
)

// subqueryStep is the step of subqueries without one.
const subqueryStep = time.Minute

// newPromEngine returns the engine that evaluates PromQL.
func newPromEngine(c config.Config, registry *prometheus.Registry, log *slog.Logger) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger: log, Reg: registry, MaxSamples: maxSamples(c), Timeout: c.Query.Timeout,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
		Parser:                   parser.NewParser(parser.Options{}),
	})
}

// promOptions connects the Prometheus API to an open store.
func promOptions(c config.Config, e *Engine, engine promql.QueryEngine, shared api.Options) prom.Options {
	queryable := func(tenant string, q *model.Quota, cost *model.Cost) *shalepromql.Queryable {
		return &shalepromql.Queryable{Read: e.Querier(), Tenant: tenant, Quota: q, Cost: cost}
	}
	started := time.Now()
	return prom.Options{
		Engine: &shalepromql.Engine{Upstream: engine, Timeout: c.Query.Timeout, SubqueryStep: subqueryStep},
		Queryable: func(tenant string, q *model.Quota, cost *model.Cost) storage.Queryable {
			return queryable(tenant, q, cost)
		},
		Exemplars: func(tenant string, q *model.Quota, cost *model.Cost) storage.ExemplarQueryable {
			return queryable(tenant, q, cost)
		},
		Metadata: e.Metadata,
		TSDB: func(ctx context.Context, tenant string, limit int, q *model.Quota, cost *model.Cost) (prom.TSDBStatus, error) {
			return tsdbStatus(ctx, e, tenant, limit, c, q, cost)
		},
		Flags:   func() map[string]string { return flags(&c) },
		Config:  func() string { return c.YAML(nil) },
		Runtime: func() prom.RuntimeInfo { return runtimeInfo(&c, started) },
		Options: shared,
	}
}

// maxSamples returns the engine's own limit of samples in memory, which take 16 bytes each.
func maxSamples(c config.Config) int {
	n := c.Query.MaxBytes / 16
	if c.Query.MaxSamples > 0 {
		n = min(n, c.Query.MaxSamples)
	}
	return int(n)
}

// recent is how far status/tsdb looks back: the range of Prometheus's head.
const recent = 2 * time.Hour

// tsdbStatus counts the recent series of a tenant.
func tsdbStatus(ctx context.Context, e *Engine, tenant string, limit int, c config.Config, q *model.Quota, cost *model.Cost) (prom.TSDBStatus, error) {
	now := e.Path().Now()
	req := &model.Request{
		Tenant: tenant, Signal: model.Metrics, Range: model.TimeRange{Min: now - int64(recent), Max: now + int64(c.Write.MaxFuture)},
		Quota: q, Cost: cost,
	}
	n, err := e.Querier().Cardinality(ctx, req, limit)
	if err != nil {
		return prom.TSDBStatus{}, err
	}
	lines := func(list []read.Counted) []prom.TSDBStat {
		out := make([]prom.TSDBStat, 0, len(list))
		for _, x := range list {
			out = append(out, prom.TSDBStat{Name: x.Name, Value: x.Count})
		}
		return out
	}
	return prom.TSDBStatus{
		HeadStats: prom.HeadStats{
			NumSeries: n.Series, NumLabelPairs: n.Pairs, MinTime: req.Range.Min / int64(time.Millisecond), MaxTime: req.Range.Max / int64(time.Millisecond),
		},
		SeriesCountByMetricName: lines(n.SeriesByMetric), LabelValueCountByLabelName: lines(n.ValuesByName),
		MemoryInBytesByLabelName: lines(n.BytesByName), SeriesCountByLabelValuePair: lines(n.SeriesByPair),
	}, nil
}

// flags returns the effective settings.
func flags(c *config.Config) map[string]string {
	all := make(map[string]string)
	for _, s := range config.Settings() {
		all[s.Name] = s.Text(c)
	}
	return all
}

func runtimeInfo(c *config.Config, started time.Time) prom.RuntimeInfo {
	dir, _ := os.Getwd() // unknown values stay empty
	host, _ := os.Hostname()
	return prom.RuntimeInfo{
		StartTime: started, CWD: dir, Hostname: host, ServerTime: time.Now(), ReloadConfigSuccess: true, LastConfigTime: started,
		GoroutineCount: runtime.NumGoroutine(), GOMAXPROCS: runtime.GOMAXPROCS(0), GOMEMLIMIT: debug.SetMemoryLimit(-1),
		StorageRetention: config.Duration(c.Retention).String(),
	}
}
