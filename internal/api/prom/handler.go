package prom

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/internal/api"
)

// Handler serves the API. It is safe for concurrent use and starts no goroutine.
type Handler struct {
	o        Options
	pipeline *api.Pipeline
	document string // OpenAPI
}

// New returns a Handler.
func New(o Options) *Handler {
	o.setDefaults()
	registerFeatures(o.Features)
	return &Handler{
		o: o, pipeline: api.NewPipeline(&o.Options, newMetrics(o.Registerer, o.Pool)), document: openAPIDocument(operations()),
	}
}

// Routes mounts the API below /api/v1/, /federate and /version. Unknown paths below /api/v1/ get 404 in JSON.
func (h *Handler) Routes(mux api.Mux) {
	h.pipeline.Mount(mux, &api.Dialect{
		ContentType: "application/json", Tenants: api.OneTenant, Classify: classify, WriteError: writeError, CrossOrigin: true,
	}, slices.Concat(h.endpoints(), h.mimirEndpoints(), h.cardinalityEndpoints()))
	// Other servers ask these, and show errors as text.
	h.pipeline.Mount(mux, &api.Dialect{Tenants: api.OneTenant, Classify: classify, WriteError: writePlainError}, h.plainEndpoints())
}

// What the endpoints need.
const (
	fixed    = api.Form                // neither a tenant nor a turn
	computed = api.Form | api.Turn     // the engine has a timeout of its own, and the rest does not wait
	bounded  = computed | api.Deadline // reads the store without the engine
)

const prefix = "/api/v1/"

// The data of explained queries.
const (
	emptyVector = `{"resultType":"vector","result":[]}`
	emptyMatrix = `{"resultType":"matrix","result":[]}`
	emptyList   = `[]`
)

func (h *Handler) endpoints() []api.Endpoint {
	return []api.Endpoint{
		{Pattern: prefix + "query", Name: "query", Needs: computed, Serve: h.query, Explained: emptyVector, Kept: keptInstant},
		{Pattern: prefix + "query_range", Name: "query_range", Needs: computed, Serve: h.queryRange, Explained: emptyMatrix, Kept: keptRange},
		{Pattern: prefix + "query_exemplars", Name: "query_exemplars", Needs: bounded, Serve: h.queryExemplars, Explained: emptyList, Kept: keptRange},
		{Pattern: prefix + "format_query", Name: "format_query", Needs: computed, Serve: h.formatQuery},
		{Pattern: prefix + "parse_query", Name: "parse_query", Needs: computed, Serve: h.parseQuery},
		{Pattern: prefix + "series", Name: "series", Needs: bounded, Serve: h.series, Explained: emptyList, Kept: keptSeries},
		{Pattern: prefix + "labels", Name: "labels", Needs: bounded, Serve: h.labelNames, Kept: keptLabels},
		{Pattern: prefix + "label/{name}/values", Name: "label_values", Needs: bounded, Serve: h.labelValues, Kept: keptLabels},
		{Pattern: prefix + "metadata", Name: "metadata", Needs: computed, Serve: h.metadata},
		{Pattern: prefix + "status/tsdb", Name: "tsdb", Needs: bounded, Serve: h.tsdb},
		{Pattern: prefix + "status/tsdb/blocks", Name: "tsdb_blocks", Needs: computed, Serve: h.tsdbBlocks},
		{Pattern: prefix + "status/self_metrics", Name: "self_metrics", Needs: computed, Serve: h.selfMetrics},
		{Pattern: prefix + "status/buildinfo", Name: "buildinfo", Needs: fixed, Serve: h.buildInfo},
		{Pattern: prefix + "status/config", Name: "config", Needs: fixed, Serve: h.config},
		{Pattern: prefix + "status/flags", Name: "flags", Needs: fixed, Serve: h.flags},
		{Pattern: prefix + "status/runtimeinfo", Name: "runtimeinfo", Needs: fixed, Serve: h.runtimeInfo},
		{Pattern: prefix + "status/walreplay", Name: "walreplay", Needs: fixed, Serve: constant(`{"min":0,"max":0,"current":0}`)},
		{Pattern: prefix + "features", Name: "features", Needs: fixed, Serve: h.features},
		{Pattern: prefix + "openapi.yaml", Name: "openapi", Needs: fixed, Serve: h.openAPI},
		{Pattern: prefix + "rules", Name: "rules", Needs: computed, Serve: h.rules},
		{Pattern: prefix + "alerts", Name: "alerts", Needs: fixed, Serve: constant(`{"alerts":[]}`)},
		{
			Pattern: prefix + "alertmanagers", Name: "alertmanagers", Needs: fixed,
			Serve: constant(`{"activeAlertmanagers":[],"droppedAlertmanagers":[]}`),
		},
		{Pattern: prefix + "notifications", Name: "notifications", Needs: fixed, Serve: constant(`[]`)},
		{Pattern: prefix + "notifications/live", Name: "notifications_live", Needs: fixed, Serve: noNotifications},
		{Pattern: prefix + "scrape_pools", Name: "scrape_pools", Needs: fixed, Serve: constant(`{"scrapePools":[]}`)},
		{Pattern: prefix + "scrape_pools/config", Name: "scrape_pools_config", Needs: fixed, Serve: scrapePoolConfig},
		{Pattern: prefix + "targets", Name: "targets", Needs: fixed, Serve: targets},
		{Pattern: prefix + "targets/metadata", Name: "targets_metadata", Needs: computed, Serve: h.targetsMetadata},
		{Pattern: prefix + "targets/relabel_steps", Name: "targets_relabel_steps", Needs: fixed, Serve: relabelSteps},
		{Pattern: prefix + "search/metric_names", Name: "search", Needs: fixed, Serve: searchDisabled},
		{Pattern: prefix + "search/label_names", Name: "search", Needs: fixed, Serve: searchDisabled},
		{Pattern: prefix + "search/label_values", Name: "search", Needs: fixed, Serve: searchDisabled},
		{Pattern: prefix + deleteSeries, Name: "delete_series", Needs: bounded, Methods: changes, Serve: h.deleteSeries},
		{Pattern: prefix + cleanTombstones, Name: "clean_tombstones", Needs: bounded, Methods: changes, Serve: h.cleanTombstones},
		{Pattern: prefix + "admin/tsdb/snapshot", Name: "admin", Serve: adminDisabled},
		{Pattern: prefix, Name: "unknown", Serve: unknown},
	}
}

// store returns the series of the tenant of a request.
func (h *Handler) store(r *api.Request) storage.Queryable {
	return h.o.Queryable(r.Tenant(), r.Quota, r.Cost)
}

// plainEndpoints show errors as text.
func (h *Handler) plainEndpoints() []api.Endpoint {
	return []api.Endpoint{
		{Pattern: prefix + "read", Name: "read", Needs: api.Content | api.Turn | api.Deadline, Serve: h.read},
		{Pattern: "/federate", Name: "federate", Needs: bounded, Serve: h.federate},
		{Pattern: "/version", Name: "version", Needs: fixed, Serve: h.version},
	}
}

// Which responses may be kept. Statistics have times of their own.
var (
	keptInstant = &api.Kept{Times: []string{"time"}, Refuse: wantsStatistics}
	keptRange   = &api.Kept{Refuse: wantsStatistics} // both times are mandatory
	keptSeries  = &api.Kept{}                        // without times, it is about all times
	keptLabels  = &api.Kept{Align: alignTimes}
)

func wantsStatistics(r *api.Request) bool { return r.Form.Has("stats") }

// alignTimes widens the range of a request for labels. Labels are listed by blocks anyway, and
// a dashboard asks for those of a range that ends now.
func alignTimes(form url.Values) {
	api.AlignTimes(form, func(s string) (int64, bool) {
		t, err := parseTime(s)
		return t.UnixNano(), err == nil && t.After(minTime) && t.Before(maxTime)
	}, func(t int64) string { return strconv.FormatInt(t/int64(time.Second), 10) })
}
