package graphite

import (
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/api"
)

// Handler serves the API. It is safe for concurrent use and starts no goroutine.
type Handler struct {
	o        Options
	pipeline *api.Pipeline
}

// New returns a Handler.
func New(o Options) *Handler {
	o.SetDefaults()
	return &Handler{o: o, pipeline: api.NewPipeline(&o.Options, newMetrics(o.Registerer))}
}

// Below is the path below which the whole API is mounted a second time. Prometheus owns /version, and Shale's
// own metrics own /metrics, so these two endpoints of graphite-web are served only there.
const Below = "/graphite"

// Version is the version of graphite-web whose API is served.
const Version = "1.1.10"

// Routes mounts the API at the root and below /graphite.
func (h *Handler) Routes(mux api.Mux) {
	d := api.Dialect{ContentType: "application/json", Tenants: api.OneTenant, Classify: classify, WriteError: writeText, CrossOrigin: true}
	inJSON := d
	inJSON.WriteError = writeJSON
	for _, prefix := range []string{"", Below} {
		h.pipeline.Mount(mux, &d, paths(prefix, h.endpoints()))
		h.pipeline.Mount(mux, &inJSON, paths(prefix, slices.Concat(h.jsonEndpoints(), h.tagEndpoints(), h.eventEndpoints())))
	}
	h.pipeline.Mount(mux, &d, paths(Below, h.prefixedEndpoints()))
}

// What the endpoints need.
const (
	fixed   = api.Form // neither a tenant nor a turn
	bounded = api.Form | api.Turn | api.Deadline
)

// endpoints shows errors as text.
func (h *Handler) endpoints() []api.Endpoint {
	return []api.Endpoint{
		{Pattern: "/render", Name: "render", Needs: bounded, Serve: h.render},
		{Pattern: "/metrics/find", Name: "find", Needs: bounded, Serve: h.find},
		{Pattern: "/metrics/expand", Name: "expand", Needs: bounded, Serve: h.expand},
		{Pattern: "/metrics/index.json", Name: "index", Needs: bounded, Serve: h.index},
		{Pattern: "/metrics/search", Name: "search", Needs: bounded, Serve: h.search},
	}
}

// jsonEndpoints shows errors as JSON.
func (h *Handler) jsonEndpoints() []api.Endpoint {
	return []api.Endpoint{
		{Pattern: "/functions", Name: "functions", Needs: fixed, Serve: h.functions},
		{Pattern: "/functions/{name...}", Name: "function", Needs: fixed, Serve: h.function},
	}
}

// prefixedEndpoints are served only below /graphite.
func (h *Handler) prefixedEndpoints() []api.Endpoint {
	return []api.Endpoint{
		{Pattern: "/version", Name: "version", Needs: fixed, Serve: h.version},
		{Pattern: "/metrics", Name: "find", Needs: bounded, Serve: h.find},
	}
}

// paths puts endpoints below a prefix. As in graphite-web, a path may end in a slash.
func paths(prefix string, table []api.Endpoint) []api.Endpoint {
	out := make([]api.Endpoint, 0, 2*len(table))
	for _, e := range table {
		e.Pattern = prefix + e.Pattern
		out = append(out, e)
		if !strings.HasSuffix(e.Pattern, "...}") {
			e.Pattern += "/{$}"
			out = append(out, e)
		}
	}
	return out
}

// version serves what clients compare with the versions of graphite-web that have a feature.
func (h *Handler) version(*api.Request) (*api.Response, error) {
	return &api.Response{ContentType: "text/html; charset=utf-8", Write: func(b *api.Body) error {
		b.Raw(Version + "\n")
		return nil
	}}, nil
}
