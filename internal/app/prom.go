package app

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/features"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/write/promwrite"
	"github.com/shaledb/shale/internal/write/replicas"
)

// subqueryStep is the step of subqueries without one.
const subqueryStep = time.Minute

// promEngine evaluates PromQL.
type promEngine struct {
	*shalepromql.Engine
	upstream *promql.Engine
	// enabled says which features are on.
	enabled features.Collector
	metrics *prometheus.Registry
}

func newPromEngine(c config.Config, registry *prometheus.Registry, log *slog.Logger) *promEngine {
	e := &promEngine{enabled: features.NewRegistry(), metrics: registry}
	e.Engine, e.upstream = c.Features.Engine(promql.EngineOpts{
		Logger: log, Reg: upstreamMetrics{registry}, MaxSamples: maxSamples(c), Timeout: c.Query.Timeout,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
		FeatureRegistry:          e.enabled,
	})
	e.SubqueryStep = subqueryStep
	return e
}

// Close ends the queries that wait.
func (e *promEngine) Close() error { return e.upstream.Close() }

// upstreamMetrics leaves out upstream's histogram of query times, which has the values of its summary under a
// name that promtool objects to.
type upstreamMetrics struct{ prometheus.Registerer }

// MustRegister registers the collectors, without histograms.
func (r upstreamMetrics) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if _, histogram := c.(*prometheus.HistogramVec); !histogram {
			r.Registerer.MustRegister(c)
		}
	}
}

// promOptions connects the Prometheus API to an open store.
func promOptions(c config.Config, e *Engine, engine *promEngine, shared api.Options) prom.Options {
	queryable := func(tenant string, q *model.Quota, cost *model.Cost) *shalepromql.Queryable {
		return &shalepromql.Queryable{Read: e.Querier(), Tenant: tenant, Quota: q, Cost: cost, Results: e.Results()}
	}
	started, counter := time.Now(), e.counter()
	o := prom.Options{
		Engine: engine.Engine, Parser: c.Features.Parser(), Features: engine.enabled, Gatherer: engine.metrics,
		Queryable: func(tenant string, q *model.Quota, cost *model.Cost) storage.Queryable {
			return queryable(tenant, q, cost)
		},
		Exemplars: func(tenant string, q *model.Quota, cost *model.Cost) storage.ExemplarQueryable {
			return queryable(tenant, q, cost)
		},
		Rollups: e.promRollups, RollupUse: c.QueryRollups,
		Metadata:    e.Metadata,
		TSDB:        counter.Status,
		Cardinality: counter, Asked: func(tenant string, labels ...string) { e.asked.Named(tenant, labels...) },
		Blocks:  func(tenant string) []prom.Block { return tsdbBlocks(e, tenant) },
		Flags:   func() map[string]string { return flags(&c) },
		Config:  func() string { return c.YAML(nil) },
		Runtime: func() prom.RuntimeInfo { return runtimeInfo(&c, started) },
		Options: shared,
	}
	switch {
	case c.Head.Deletion.Deletions == 0:
	case e != nil && e.deletions != nil: // compaction runs elsewhere, by itself
		o.Delete, o.Clean = deletePromSeries(e.deletions), func() {}
	case c.Head.Deletion.Deletions > 0:
		o.Delete, o.Clean = deletePromSeries(e), e.compactor.Wake
	}
	return o
}

// maxSamples returns the engine's own limit of samples in memory, which take 16 bytes each.
func maxSamples(c config.Config) int {
	n := c.Query.MaxBytes / 16
	if c.Query.MaxSamples > 0 {
		n = min(n, c.Query.MaxSamples)
	}
	return int(n)
}

// tsdbBlocks returns the blocks of the bucket that may hold samples of a tenant, the oldest samples first.
func tsdbBlocks(e *Engine, tenant string) []prom.Block {
	live := e.catalog.Overlapping(model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}, model.Metrics, tenant)
	blocks := make([]prom.Block, 0, len(live))
	for i := range live {
		b := &live[i]
		blocks = append(blocks, prom.Block{
			ID: b.ID, MinTime: time.Unix(0, b.Range.Min).UnixMilli(), MaxTime: time.Unix(0, b.Range.Max).UnixMilli() + 1,
			Stats:      prom.BlockStats{NumSamples: b.Samples, NumSeries: b.Series},
			Compaction: prom.BlockCompaction{Level: int(b.Level) + 1}, Version: 1,
		})
	}
	slices.SortStableFunc(blocks, func(a, b prom.Block) int { return cmp.Compare(a.MinTime, b.MinTime) })
	return blocks
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

// replicasFile has the elected replicas of HA pairs, in the data folder.
const replicasFile = "REPLICAS"

// electReplicas returns what elects replicas of HA pairs, or nil. stop saves the elected ones.
func electReplicas(c *config.Config, e *Engine, registry *prometheus.Registry, log *slog.Logger) (elector promwrite.Elector, stop func(), err error) {
	if !c.HA.On() {
		return nil, func() {}, nil
	}
	fs := e.o.FS
	t, err := replicas.Open(replicas.Options{
		Settings: c.Replicas, FS: fs, File: fs.PathJoin(e.o.DataDir, replicasFile), Registerer: registry, Logger: log,
		SpareBytes: splitMemory(c.MemoryBytes).divided(uses{carbon: c.Carbon.Any(), replicas: true}).replicas,
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { t.Run(ctx) })
	return t, sync.OnceFunc(func() {
		cancel()
		done.Wait()
	}), nil
}

// Metadata emits the metadata of a metric family, or of all families of a tenant if the name is empty.
func (e *Engine) Metadata(tenant, family string, cost *model.Cost, emit func(family string, m model.Metadata) bool) error {
	if e.families != nil {
		warning, err := e.families.Metadata(tenant, family, emit)
		if warning != "" {
			cost.Warnings.Add(warning)
		}
		return err
	}
	e.lost.warnOfMetadata(cost, e.now())
	e.head.Metadata(tenant, family, emit)
	return nil
}
