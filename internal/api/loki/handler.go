package loki

import (
	"strings"

	"github.com/shaledb/shale/internal/api"
)

// Handler serves the API. It is safe for concurrent use. Its only goroutines are those of tail connections,
// which Close ends.
type Handler struct {
	o        Options
	pipeline *api.Pipeline
	metrics  *metrics
	tails    *tails
}

// New returns a Handler.
func New(o Options) *Handler {
	o.setDefaults()
	m := newMetrics(o.Registerer)
	return &Handler{o: o, pipeline: api.NewPipeline(&o.Options, &m.Metrics), metrics: m, tails: newTails(o.MaxTails)}
}

// Close ends the tail connections and waits for them; new ones are refused. The shutdown of the HTTP server
// does not wait for them, since they have left HTTP. The engine must be open until Close returns.
func (h *Handler) Close() error {
	h.tails.close()
	return nil
}

// The prefixes of the paths: Loki's own, and those from before it had a version.
const (
	current = "/loki/api/v1/"
	legacy  = "/api/prom/"
)

// The data of explained queries. A query over a range has no streams, whether it is for lines or for numbers.
const (
	emptyStreams = `{"resultType":"streams","result":[]}`
	emptyVector  = `{"resultType":"vector","result":[]}`
	emptyMatrix  = `{"resultType":"matrix","result":[]}`
	emptyList    = `[]`
)

// isLegacy reports whether a request came by one of the old paths.
func isLegacy(r *api.Request) bool { return strings.HasPrefix(r.URL.Path, legacy) }

// Routes mounts the API below /loki/api/v1/ and /api/prom/, and /config/tenant/v1/limits. Other handlers may
// have paths below the same prefixes.
func (h *Handler) Routes(mux api.Mux) {
	h.pipeline.Mount(mux, &api.Dialect{
		ContentType: "application/json; charset=UTF-8", Tenants: api.ManyTenants, Classify: classify, WriteError: writeError,
		CrossOrigin: true, CORSHeaders: ", X-Loki-Response-Encoding-Flags, X-Query-Tags, X-Scope-OrgID",
	}, h.endpoints())
}

// What the endpoints need.
const (
	fixed   = api.Form // neither a tenant nor a turn
	bounded = api.Form | api.Turn | api.Deadline
)

func (h *Handler) endpoints() []api.Endpoint {
	return []api.Endpoint{
		{Pattern: current + "query_range", Name: "query_range", Needs: bounded, Serve: h.queryRange, Explained: emptyStreams, Kept: keptRange},
		{Pattern: current + "query", Name: "query", Needs: bounded, Serve: h.query, Explained: emptyVector, Kept: keptInstant},
		{Pattern: current + "labels", Name: "labels", Needs: bounded, Serve: h.labelNames, Kept: keptLabels},
		{Pattern: current + "label", Name: "labels", Needs: bounded, Serve: h.labelNames, Kept: keptLabels},
		{Pattern: current + "label/{name}/values", Name: "label_values", Needs: bounded, Serve: h.labelValues, Kept: keptLabels},
		{Pattern: current + "series", Name: "series", Needs: bounded, Serve: h.series, Explained: emptyList, Kept: keptSeries},
		{Pattern: current + "index/stats", Name: "index_stats", Needs: bounded, Serve: h.indexStats, Kept: keptSummary},
		{Pattern: current + "index/volume", Name: "index_volume", Needs: bounded, Serve: h.volume, Explained: emptyVector, Kept: keptSummary},
		{Pattern: current + "index/volume_range", Name: "index_volume_range", Needs: bounded, Serve: h.volumeRange, Explained: emptyMatrix, Kept: keptSummary},
		{Pattern: current + "detected_labels", Name: "detected_labels", Needs: bounded, Serve: h.detectedLabels, Kept: keptSummary},
		{Pattern: current + "detected_fields", Name: "detected_fields", Needs: bounded, Serve: h.detectedFields, Kept: keptSummary},
		{Pattern: current + "detected_field/{name}/values", Name: "detected_field_values", Needs: bounded, Serve: h.detectedValues, Kept: keptSummary},
		{Pattern: current + "drilldown-limits", Name: "drilldown_limits", Needs: fixed, Serve: h.drilldownLimits},
		{Pattern: "/config/tenant/v1/limits", Name: "tenant_limits", Needs: fixed, Serve: h.tenantLimits},
		{Pattern: current + "patterns", Name: "patterns", Needs: bounded, Serve: h.patterns, Kept: keptSummary},
		{Pattern: current + "format_query", Name: "format_query", Needs: fixed, Serve: h.formatQuery},
		{Pattern: current + "delete", Name: "delete", Needs: bounded, Methods: "GET, HEAD, POST, PUT, DELETE", Serve: h.delete},
		{Pattern: current + "cache/generation_numbers", Name: "cache_generation_numbers", Needs: bounded, Serve: h.cacheGeneration},
		{Pattern: current + "status/buildinfo", Name: "buildinfo", Needs: fixed, Serve: h.buildInfo},
		{Pattern: current + "tail", Name: "tail", Needs: fixed, Serve: h.tail},
		{Pattern: legacy + "query", Name: "query_range", Needs: bounded, Serve: h.queryRange, Kept: keptRange},
		{Pattern: legacy + "label", Name: "labels", Needs: bounded, Serve: h.labelNames, Kept: keptLabels},
		{Pattern: legacy + "label/{name}/values", Name: "label_values", Needs: bounded, Serve: h.labelValues, Kept: keptLabels},
		{Pattern: legacy + "series", Name: "series", Needs: bounded, Serve: h.series, Kept: keptSeries},
		{Pattern: legacy + "tail", Name: "tail", Needs: fixed, Serve: h.tail},
	}
}

// response returns a successful response, whose body write writes.
func response(write func(*api.Body)) *api.Response {
	return &api.Response{Write: func(b *api.Body) error {
		write(b)
		return nil
	}}
}
