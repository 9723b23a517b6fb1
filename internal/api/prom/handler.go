package prom

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Handler serves the API. It is safe for concurrent use and starts no goroutine.
type Handler struct {
	o       Options
	pool    *model.QueryPool
	gate    *api.Gate
	metrics *metrics
	memory  *api.Memory
	origins api.Origins
}

// New returns a Handler.
func New(o Options) *Handler {
	o.setDefaults()
	m := newMetrics(o.Registerer, o.Pool)
	return &Handler{
		o: o, pool: o.Pool, gate: api.NewGate(o.Slots, o.Limits.MaxWait, m.gate), metrics: m, memory: api.NewMemory(), origins: api.NewOrigins(o.CORSOrigin),
	}
}

// Routes mounts the API below /api/v1/, and /federate. Paths below /api/v1/ that nobody else has are answered with 404
// in JSON.
func (h *Handler) Routes(mux *http.ServeMux) {
	for path, handler := range map[string]http.Handler{
		"query":               h.endpoint("query", h.query),
		"query_range":         h.endpoint("query_range", h.queryRange),
		"query_exemplars":     h.endpoint("query_exemplars", h.queryExemplars),
		"format_query":        h.endpoint("format_query", h.formatQuery),
		"parse_query":         h.endpoint("parse_query", h.parseQuery),
		"series":              h.endpoint("series", h.series),
		"labels":              h.endpoint("labels", h.labelNames),
		"label/{name}/values": h.endpoint("label_values", h.labelValues),
		"metadata":            h.endpoint("metadata", h.metadata),
		"read":                h.remoteRead(),
		"status/tsdb":         h.endpoint("tsdb", h.tsdb),
		"status/buildinfo":    h.fixed("buildinfo", h.buildInfo),
		"status/config":       h.fixed("config", h.config),
		"status/flags":        h.fixed("flags", h.flags),
		"status/runtimeinfo":  h.fixed("runtimeinfo", h.runtimeInfo),
		"status/walreplay":    h.fixed("walreplay", constant(`{"min":0,"max":0,"current":0}`)),
		"rules":               h.endpoint("rules", h.rules),
		"alerts":              h.fixed("alerts", constant(`{"alerts":[]}`)),
		"alertmanagers":       h.fixed("alertmanagers", constant(`{"activeAlertmanagers":[],"droppedAlertmanagers":[]}`)),
		"notifications":       h.fixed("notifications", constant(`[]`)),
		"scrape_pools":        h.fixed("scrape_pools", constant(`{"scrapePools":[]}`)),
		"targets":             h.fixed("targets", targets),
		"targets/metadata":    h.endpoint("targets_metadata", h.targetsMetadata),
		"search/":             h.fixed("search", searchDisabled),
		"":                    h.open("unknown", false, unknown),
	} {
		mux.Handle("/api/v1/"+path, handler)
	}
	mux.Handle("/federate", h.federation())
}

// Handler returns the routes as a handler of their own.
func (h *Handler) Handler() http.Handler {
	mux := http.NewServeMux()
	h.Routes(mux)
	return mux
}

// request is a request whose parameters were read.
type request struct {
	*http.Request
	ctx    context.Context
	form   url.Values
	tenant string
	text   []byte // of a body that is no form
	quota  *model.Quota
	cost   *model.Cost
	// store answers for the tenant of the request.
	store storage.Queryable
	// leave gives up the turn of the request, after the answer has been written; nil if it needed none.
	leave func()
}

// answer is a successful result. Write writes the JSON of the data; done is called when that has been written.
type answer struct {
	write    func(*body)
	warnings annotations.Annotations
	query    string // to which the positions in warnings refer
	done     func()
	// empty says that there is nothing to be said: 204.
	empty bool
	// stream writes an answer without envelope, instead of write; it may fail. Its type is contentType, and compressed
	// says that it must not be compressed again.
	stream      func(*body) error
	contentType string
	compressed  bool
}

// server makes an answer out of a request.
type server func(*request) (*answer, error)

// endpoint serves what reads the store or computes.
func (h *Handler) endpoint(name string, serve server) http.Handler {
	return h.open(name, false, h.withForm(h.withTurn(serve)))
}

// fixed serves what needs neither a tenant nor a turn.
func (h *Handler) fixed(name string, serve server) http.Handler {
	return h.open(name, false, h.withForm(serve))
}

// withTurn waits for the turn of the request and gives it a tenant and a store.
func (h *Handler) withTurn(serve server) server {
	return func(r *request) (*answer, error) {
		r.tenant = r.Header.Get("X-Scope-OrgID")
		if r.tenant == "" {
			r.tenant = model.DefaultTenant
		}
		if err := model.CheckTenant(r.tenant); err != nil {
			return nil, err
		}
		if err := h.gate.Enter(r.ctx); err != nil {
			return nil, err
		}
		r.leave = h.gate.Leave
		r.store = h.o.Queryable(r.tenant, r.quota, r.cost)
		return serve(r)
	}
}

// bounded is the context of work that the engine does not see.
func (h *Handler) bounded(r *request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.ctx, h.o.Limits.Timeout)
}

// open serves anything: it writes the answer or the error, which is text if plain is set.
func (h *Handler) open(name string, plain bool, serve server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		began := time.Now()
		l := &h.o.Limits
		r := &request{
			Request: hr, ctx: hr.Context(), cost: new(model.Cost),
			quota: &model.Quota{MaxSeries: l.MaxSeries, MaxSamples: l.MaxSamples, MaxBytes: l.MaxBytes, Pool: h.pool},
		}
		out := &body{Body: api.NewBody(w, hr, h.memory, h.o.Limits.Timeout, r.cost), plain: plain}
		defer func() {
			if p := recover(); p != nil {
				h.panicked(out, name, p)
			}
			r.quota.Release()
			if r.leave != nil {
				r.leave()
			}
			out.Release()
			h.metrics.requests.WithLabelValues(name, strconv.Itoa(out.Status)).Inc()
			h.metrics.seconds.WithLabelValues(name).Observe(time.Since(began).Seconds())
			if out.Broken {
				// The client must not take what it got for the whole.
				panic(http.ErrAbortHandler)
			}
		}()
		if !plain {
			h.origins.Allow(w.Header(), hr, "")
		}
		r.Body = &api.ChargedBody{ReadCloser: http.MaxBytesReader(w, r.Body, h.o.Limits.MaxBodyBytes), Quota: r.quota}
		a, err := serve(r)
		if err == nil {
			if a.done != nil {
				defer a.done()
			}
			err = out.success(a)
		}
		if err != nil {
			h.fail(out, name, r, err)
		}
	})
}

// withForm reads the parameters, from the URL and from the form of a POST.
func (h *Handler) withForm(serve server) server {
	return func(r *request) (*answer, error) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodPost:
		case http.MethodOptions:
			return &answer{empty: true}, nil
		default:
			return nil, notAllowed(r.Method, "GET, HEAD, POST")
		}
		if err := api.ParseForm(r.Request, h.o.Limits.MaxBodyBytes); err != nil {
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) {
				return nil, &apiError{typeBadData, http.StatusRequestEntityTooLarge,
					fmt.Errorf("the form is larger than %d bytes", tooLarge.Limit)}
			}
			if api.IsRefusal(err) {
				return nil, err
			}
			return nil, badData("error parsing form values: %w", err)
		}
		r.form = r.Form
		return serve(r)
	}
}

func notAllowed(method, allowed string) *apiError {
	return &apiError{typeBadData, http.StatusMethodNotAllowed, &methodError{method, allowed}}
}

// methodError refuses a method and names those that are allowed.
type methodError struct{ method, allowed string }

func (e *methodError) Error() string { return "method " + e.method + " is not allowed" }

func (h *Handler) fail(out *body, name string, r *request, err error) {
	e := classify(err)
	if e.kind == typeCanceled && r.Context().Err() != nil {
		e.status = statusClientClosed
	}
	if e.status >= http.StatusInternalServerError {
		h.o.Logger.Warn("request failed", "handler", name, "status", e.status, "err", e.text())
	}
	if out.Broken {
		return
	}
	var method *methodError
	switch {
	case errors.As(e.err, &method):
		out.W.Header().Set("Allow", method.allowed)
	case e.status == http.StatusServiceUnavailable && e.kind != typeTimeout:
		out.W.Header().Set("Retry-After", "5")
	}
	out.failure(e)
}

// panicked turns a bug into an error of one request.
func (h *Handler) panicked(out *body, name string, p any) {
	h.o.Logger.Error("panic", "handler", name, "panic", p, "stack", string(debug.Stack()))
	if out.Status != 0 {
		out.Broken = true
		return
	}
	out.failure(&apiError{typeInternal, http.StatusInternalServerError, fmt.Errorf("unexpected error: %v", p)})
}
