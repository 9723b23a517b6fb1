package app

import (
	"context"
	"log/slog"
	"math"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/loki"
	"github.com/shaledb/shale/internal/app/deletions"
	"github.com/shaledb/shale/internal/app/following"
	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/pressure"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/patterns"
	"github.com/shaledb/shale/internal/read/remote"
	"github.com/shaledb/shale/internal/read/victorialogs"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/graphite/events"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/lokipush"
	"github.com/shaledb/shale/internal/write/otlp"
)

// The rooms fit together.
var (
	_ logql.Watcher = (*write.Path)(nil)
	_ loki.Engine   = (*logql.Engine)(nil)
)

// apiOptions returns the options that the APIs of all languages share, with the same slots and the same
// memory.
func apiOptions(c config.Config, registry *prometheus.Registry, log *slog.Logger) api.Options {
	split := memoryOf(&c)
	queries, slots := split.queries, api.NewSlots(c.Query.MaxConcurrent)
	slots.BoundPauses(queries)
	processors := &model.Processors{Count: pressure.Processors(), Shared: slots.Shared, Mixed: slots.Mixed}
	return api.Options{
		Slots:      slots,
		Pool:       &model.QueryPool{MaxBytes: queries, Grain: min(queries>>10, 64<<10), Shared: slots.Shared},
		Processors: processors,
		Forms:      &model.QueryPool{MaxBytes: split.forms, Name: "forms and bodies of queries"},
		Waits:      api.NewWaitMetrics(registry, processors),
		Limits:     c.Query,
		Again:      remote.IsLost,
		Version:    api.Version{Version: c.Version, Revision: c.Commit, GoVersion: runtime.Version()},
		Registerer: registry, Logger: log,
	}
}

// budgets returns the budgets of queries. A bucket in a folder costs nothing to read.
func budgets(c *config.Config, e *Engine, registry *prometheus.Registry) *bill.Budgets {
	o := bill.Options{Limits: c.Bill, Free: bucketIsFree(c), Rate: e.rate, Registerer: registry}
	if c.TenantsFile != "" {
		o.LimitsOf = e.o.Tenants.bucketReads
	}
	return bill.New(o)
}

// receive mounts the receivers of log lines, of OpenTelemetry's metrics and of Graphite's events, which are
// lines.
func receive(c config.Config, path *write.Path, tenants *tenantBook, mux api.Mux, registry *prometheus.Registry) {
	rules := tenants.lines
	if all := c.EveryTenant(); c.TenantsFile == "" {
		rules = func(tenant string) *logs.Rules { return &all.Of(tenant).Lines }
	}
	push := lokipush.New(lokipush.Options{Sink: path, RulesOf: rules, Registerer: registry})
	mux.Handle(lokipush.Path, push)
	mux.Handle(lokipush.LegacyPath, push)
	records := otlp.New(otlp.Options{Sink: path, RulesOf: rules, Registerer: registry})
	mux.Handle(otlp.LogsPath, records.Logs())
	mux.Handle(otlp.MetricsPath, records.Metrics())
	mux.Handle(otlp.PrometheusMetricsPath, records.Metrics())
	event := events.New(events.Options{Sink: path, RulesOf: rules, Registerer: registry})
	for _, at := range events.Paths() {
		mux.Handle(at, event)
	}
}

// keepPatterns mines the lines that are pushed from now on, until stop is called.
func keepPatterns(c config.Config, e *Engine, registry *prometheus.Registry) (k *patterns.Keeper, stop func()) {
	k = patterns.New(patterns.Options{
		MaxBytes: splitMemory(c.MemoryBytes).patterns, Horizon: e.horizon, Whole: e.wasEmpty, Registerer: registry, Logger: e.o.Logger,
	})
	cancel := e.Path().Watch(k.See)
	return k, func() {
		cancel()
		k.Close()
	}
}

// lokiOptions connects Loki's API to an open store.
func lokiOptions(c config.Config, e *Engine, k *patterns.Keeper, shared api.Options, registry *prometheus.Registry) loki.Options {
	var further logql.Follower
	if e.further != nil {
		further = e.further
		k = nil // it has seen no lines of the other server
	}
	var watch logql.Watcher
	if e.path != nil {
		watch = e.path
	}
	o := loki.Options{
		Engine:    logql.New(logql.Options{Read: e.Querier(), Workers: pressure.Processors(), Watch: watch, Further: following.Of(e.unshipped, further), Patterns: k, Results: e.Results(), Registerer: registry}),
		Options:   shared,
		Retention: e.linesKept,
	}
	switch {
	case c.Head.Deletion.Deletions == 0:
	case e.deletions != nil:
		o.Deletions = deletions.Lines{Deletions: e.deletions, Period: c.Head.Deletion.CancelPeriod}
	default:
		o.Deletions = lineDeletions{e, k}
	}
	return o
}

// closeLogs closes the connections that follow lines, and ends the mining of patterns.
func (l *listener) closeLogs() error {
	if l.logs == nil {
		return nil
	}
	err := l.logs.Close()
	l.stopPatterns()
	l.logs = nil
	return err
}

// sources returns the sources of series.
func (e *Engine) sources(seed model.KeySeed, unshipped read.Source, shared cache.Secondary) []read.Source {
	e.unshipped = unshipped
	all := []read.Source{unshipped, e.archive}
	if e.o.VictoriaLogs.Source.Set() {
		e.further = victorialogs.New(victorialogs.Options{
			Settings: e.o.VictoriaLogs, Seed: seed, Rules: e.o.LineRules, Registerer: e.o.Registerer,
			Changed: e.furtherChanged, ClosedAfter: e.o.Results.ClosedAfter, Shared: shared, Now: e.o.Now,
		})
		all = append(all, e.further)
	}
	return all
}

// furtherChanged notes that lines of another server may have changed.
func (e *Engine) furtherChanged(tenant string, r model.TimeRange) {
	e.resultChanges.Rows(tenant, model.Logs, r)
	e.changes.Rows(tenant, model.Logs, r) // last, since answers are made of results
}

// furtherRows says whether the changes of rows in a range are noted that others have, and until when: lines
// of another server, and what other processes of Shale hold.
func (e *Engine) furtherRows(ctx context.Context, tenants []string, s model.Signal, r model.TimeRange) (until int64, ok bool) {
	if until, ok = math.MaxInt64, true; s == model.Logs && e.further != nil {
		until, ok = e.further.Check(ctx, tenants, r)
	}
	if r.Max = min(r.Max, until); ok && e.elsewhere.settled != nil {
		return e.elsewhere.settled(ctx, tenants, s, r)
	}
	return until, ok
}
