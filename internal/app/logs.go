package app

import (
	"log/slog"
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/loki"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/logs"
	"github.com/shaledb/shale/internal/write/lokipush"
	"github.com/shaledb/shale/internal/write/otlp"
)

// The rooms fit.
var (
	_ logql.Watcher = (*write.Path)(nil)
	_ loki.Engine   = (*logql.Engine)(nil)
)

// turns are what the queries of all languages share.
type turns struct {
	slots *api.Slots
	pool  *model.QueryPool
}

func newTurns(c config.Config) turns {
	return turns{slots: api.NewSlots(c.Query.MaxConcurrent), pool: &model.QueryPool{MaxBytes: splitMemory(c.MemoryBytes).queries}}
}

// apiOptions are what the APIs of all languages share.
func apiOptions(c config.Config, t turns, registry *prometheus.Registry, log *slog.Logger) api.Options {
	return api.Options{
		Slots: t.slots, Pool: t.pool, Limits: c.Query,
		Version:    api.Version{Version: c.Version, Revision: c.Commit, GoVersion: runtime.Version()},
		Registerer: registry, Logger: log,
	}
}

// lineRules are what lines are held to.
func lineRules(c config.Config) logs.Rules {
	r := logs.DefaultRules()
	r.Limits = c.LogLines
	r.MaxLabels, r.MaxNameBytes, r.MaxValueBytes = c.Write.MaxLabels, c.Write.MaxNameBytes, c.Write.MaxValueBytes
	r.DetectLevels = c.Lines.DetectLevels.On()
	if !c.Lines.ServiceName.On() {
		r.ServiceNames = nil
	}
	return r
}

// receive mounts the receivers of log lines, and that of OpenTelemetry's metrics.
func receive(c config.Config, e *Engine, mux *http.ServeMux, registry *prometheus.Registry) {
	push := lokipush.New(lokipush.Options{Sink: e.Path(), Rules: lineRules(c), Registerer: registry})
	mux.Handle(lokipush.Path, push)
	mux.Handle(lokipush.LegacyPath, push)
	records := otlp.New(otlp.Options{Sink: e.Path(), Rules: lineRules(c), Registerer: registry})
	mux.Handle(otlp.LogsPath, records.Logs())
	mux.Handle(otlp.MetricsPath, records.Metrics())
	mux.Handle(otlp.PrometheusMetricsPath, records.Metrics())
}

// lokiOptions put Loki's API before an open store.
func lokiOptions(c config.Config, e *Engine, t turns, registry *prometheus.Registry, log *slog.Logger) loki.Options {
	return loki.Options{
		Engine:  logql.New(logql.Options{Read: e.Querier(), Watch: e.Path(), Registerer: registry}),
		Options: apiOptions(c, t, registry, log),
	}
}

// closeLogs ends the connections that follow lines.
func (l *listener) closeLogs() error {
	if l.logs == nil {
		return nil
	}
	err := l.logs.Close()
	l.logs = nil
	return err
}
