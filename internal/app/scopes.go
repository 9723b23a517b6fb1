package app

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/shaledb/shale/internal/auth"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// guardedMux takes the endpoints that have a row in the table of scopes, and guards each.
type guardedMux struct {
	*http.ServeMux
	guard    *auth.Guard
	table    map[string]auth.Right
	mounted  []string
	rejected []error
}

func newGuardedMux(g *auth.Guard) *guardedMux {
	return &guardedMux{ServeMux: http.NewServeMux(), guard: g, table: scopes()}
}

// Handle mounts an endpoint, for requests that have the right that it needs.
func (m *guardedMux) Handle(pattern string, h http.Handler) {
	needs, ok := m.table[rowOf(pattern)]
	if !ok {
		m.rejected = append(m.rejected, fmt.Errorf("%w: BUG: the endpoint %q has no row in the table of scopes", model.ErrInvalid, pattern))
		return
	}
	m.mounted = append(m.mounted, rowOf(pattern))
	m.ServeMux.Handle(pattern, m.guard.Protect(needs, h))
}

// rowOf returns the row of a pattern: Graphite's endpoints are at two places, with and without a slash at the
// end.
func rowOf(pattern string) string {
	if short := strings.TrimSuffix(strings.TrimPrefix(pattern, "/graphite"), "/{$}"); strings.HasPrefix(short, "/") {
		return short
	}
	return pattern
}

// unknown returns an error if an endpoint has no row.
func (m *guardedMux) unknown() error { return errors.Join(m.rejected...) }

// scopes returns the right that each endpoint needs, by its pattern. docs/security.md has the same table.
func scopes() map[string]auth.Right {
	all := map[string]auth.Right{}
	for needs, patterns := range map[auth.Right][]string{
		auth.Open: {
			"GET /{$}", "GET /healthz", "GET /ready", "GET /-/healthy", "GET /-/ready",
			"/api/v1/", // unknown paths
		},
		auth.Admin: {
			"GET /metrics", "/-/quit", "/-/reload", "/debug/pprof/", "/api/v1/status/config", "/api/v1/status/flags",
			"/api/v1/status/runtimeinfo", "/api/v1/status/self_metrics", "/api/v1/admin/tsdb/snapshot",
			"GET /api/v1/usage", "GET /api/v1/cache", "GET /api/v1/cache/what-if", "GET /api/v1/cache/record",
		},
		auth.Peer: {
			wire.PathState, wire.PathSelect, wire.PathLabels, wire.PathNames, wire.PathText, wire.PathPage, wire.PathTail,
		},
		auth.Write: {
			"/api/v1/write", "/api/v1/write/graphite", "/loki/api/v1/push", "/api/prom/push", "/otlp/v1/logs", "/otlp/v1/metrics", "/api/v1/otlp/v1/metrics",
			"/tags/tagSeries", "/tags/tagMultiSeries", "/events",
		},
		auth.Delete: {
			"/api/v1/admin/tsdb/delete_series", "/api/v1/admin/tsdb/clean_tombstones",
			"/prometheus/api/v1/admin/tsdb/delete_series", "/prometheus/api/v1/admin/tsdb/clean_tombstones", "/loki/api/v1/delete",
			"/tags/delSeries",
		},
		auth.Read: {
			"/api/v1/query", "/api/v1/query_range", "/api/v1/query_exemplars", "/api/v1/format_query", "/api/v1/parse_query",
			"/api/v1/series", "/api/v1/labels", "/api/v1/label/{name}/values", "/api/v1/metadata", "/api/v1/read",
			"/federate", "/version", "/render", "/metrics", "/metrics/find", "/metrics/expand", "/metrics/index.json", "/metrics/search",
			"/functions", "/functions/{name...}", "/events/get_data", "/events/{id}",
			"/tags", "/tags/{tag}", "/tags/findSeries", "/tags/autoComplete/tags", "/tags/autoComplete/values",
			"/api/v1/cardinality/metrics", "/api/v1/cardinality/labels", "/api/v1/cardinality/values", "/api/v1/cardinality/active", "/api/v1/cardinality/unused",
			"/api/v1/status/tsdb", "/api/v1/status/tsdb/blocks", "/api/v1/status/buildinfo", "/api/v1/status/walreplay",
			"/api/v1/features", "/api/v1/openapi.yaml", "/api/v1/rules", "/api/v1/alerts", "/api/v1/alertmanagers",
			"/api/v1/notifications", "/api/v1/notifications/live", "/api/v1/scrape_pools", "/api/v1/scrape_pools/config",
			"/api/v1/targets", "/api/v1/targets/metadata", "/api/v1/targets/relabel_steps",
			"/api/v1/search/metric_names", "/api/v1/search/label_names", "/api/v1/search/label_values",
			"/loki/api/v1/query_range", "/loki/api/v1/query", "/loki/api/v1/labels", "/loki/api/v1/label",
			"/loki/api/v1/label/{name}/values", "/loki/api/v1/series", "/loki/api/v1/index/stats", "/loki/api/v1/index/volume",
			"/loki/api/v1/index/volume_range", "/loki/api/v1/detected_labels", "/loki/api/v1/detected_fields",
			"/loki/api/v1/detected_field/{name}/values", "/loki/api/v1/drilldown-limits", "/config/tenant/v1/limits",
			"/loki/api/v1/patterns", "/loki/api/v1/format_query", "/loki/api/v1/cache/generation_numbers",
			"/loki/api/v1/status/buildinfo", "/loki/api/v1/tail",
			"/api/prom/query", "/api/prom/label", "/api/prom/label/{name}/values", "/api/prom/series", "/api/prom/tail",
		},
	} {
		for _, p := range patterns {
			all[p] = needs
		}
	}
	return all
}
