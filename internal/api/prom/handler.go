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

	"github.com/shaledb/shale/internal/model"
)

// Handler serves the API. It is safe for concurrent use and starts no goroutine.
type Handler struct {
	o       Options
	pool    *model.QueryPool
	gate    *gate
	metrics *metrics
	memory  *memory
}

// New returns a Handler.
func New(o Options) *Handler {
	o.setDefaults()
	var pool *model.QueryPool
	if o.Limits.PoolBytes > 0 {
		pool = &model.QueryPool{MaxBytes: o.Limits.PoolBytes}
	}
	m := newMetrics(o.Registerer, pool)
	return &Handler{o: o, pool: pool, gate: newGate(o.Limits.MaxConcurrent, o.Limits.MaxWait, m), metrics: m, memory: newMemory()}
}

// Routes mounts the API below /api/v1/. Paths below it that nobody else has are answered with 404 in JSON.
func (h *Handler) Routes(mux *http.ServeMux) {
	mux.Handle("/api/v1/query", h.endpoint("query", h.query))
	mux.Handle("/api/v1/query_range", h.endpoint("query_range", h.queryRange))
	mux.Handle("/api/v1/series", h.endpoint("series", h.series))
	mux.Handle("/api/v1/labels", h.endpoint("labels", h.labelNames))
	mux.Handle("/api/v1/label/{name}/values", h.endpoint("label_values", h.labelValues))
	mux.Handle("/api/v1/status/buildinfo", h.open("buildinfo", h.withForm(h.buildInfo)))
	mux.Handle("/api/v1/", h.open("unknown", func(*request) (*answer, error) {
		return nil, &apiError{typeNotFound, http.StatusNotFound, errors.New("no such endpoint")}
	}))
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
	ctx   context.Context
	form  url.Values
	quota *model.Quota
	cost  *model.Cost
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
}

// endpoint serves what reads the store: it waits for its turn and has a tenant, a quota and a cost.
func (h *Handler) endpoint(name string, serve func(*request) (*answer, error)) http.Handler {
	return h.open(name, h.withForm(func(r *request) (*answer, error) {
		tenant := r.Header.Get("X-Scope-OrgID")
		if tenant == "" {
			tenant = model.DefaultTenant
		}
		if err := model.CheckTenant(tenant); err != nil {
			return nil, err
		}
		if err := h.gate.enter(r.ctx); err != nil {
			return nil, err
		}
		l := &h.o.Limits
		quota := &model.Quota{MaxSeries: l.MaxSeries, MaxSamples: l.MaxSamples, MaxBytes: l.MaxBytes, Pool: h.pool}
		r.quota = quota
		r.leave = func() {
			quota.Release()
			h.gate.leave()
		}
		r.store = h.o.Queryable(tenant, r.quota, r.cost)
		return serve(r)
	}))
}

// open serves anything: it writes the answer or the error.
func (h *Handler) open(name string, serve func(*request) (*answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		began := time.Now()
		out := newBody(w, hr, h.memory, h.o.Limits.Timeout)
		r := &request{Request: hr, ctx: hr.Context(), cost: new(model.Cost)}
		defer func() {
			if p := recover(); p != nil {
				h.panicked(out, name, r, p)
			}
			if r.leave != nil {
				r.leave()
			}
			out.release()
			h.metrics.requests.WithLabelValues(name, strconv.Itoa(out.status)).Inc()
			h.metrics.seconds.WithLabelValues(name).Observe(time.Since(began).Seconds())
			if out.broken {
				// The client must not take what it got for the whole.
				panic(http.ErrAbortHandler)
			}
		}()
		r.Body = http.MaxBytesReader(w, r.Body, h.o.Limits.MaxBodyBytes)
		a, err := serve(r)
		w.Header().Set("Shale-Cost", costHeader(r.cost))
		if err != nil {
			h.fail(out, name, r, err)
			return
		}
		if a.done != nil {
			defer a.done()
		}
		out.success(a)
	})
}

// withForm reads the parameters, from the URL and from the form of a POST.
func (h *Handler) withForm(serve func(*request) (*answer, error)) func(*request) (*answer, error) {
	return func(r *request) (*answer, error) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodPost:
		default:
			return nil, &apiError{typeBadData, http.StatusMethodNotAllowed, fmt.Errorf("method %s is not allowed", r.Method)}
		}
		if err := r.ParseForm(); err != nil {
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) {
				return nil, &apiError{typeBadData, http.StatusRequestEntityTooLarge,
					fmt.Errorf("the form is larger than %d bytes", tooLarge.Limit)}
			}
			return nil, badData("error parsing form values: %w", err)
		}
		r.form = r.Form
		return serve(r)
	}
}

func (h *Handler) fail(out *body, name string, r *request, err error) {
	e := classify(err)
	if e.kind == typeCanceled && r.Context().Err() != nil {
		e.status = statusClientClosed
	}
	if e.status >= http.StatusInternalServerError {
		h.o.Logger.Warn("request failed", "handler", name, "status", e.status, "err", e.err)
	}
	switch {
	case e.status == http.StatusMethodNotAllowed:
		out.w.Header().Set("Allow", "GET, HEAD, POST")
	case e.status == http.StatusServiceUnavailable && e.kind != typeTimeout:
		out.w.Header().Set("Retry-After", "5")
	}
	out.failure(e)
}

// panicked turns a bug into an error of one request.
func (h *Handler) panicked(out *body, name string, r *request, p any) {
	h.o.Logger.Error("panic", "handler", name, "panic", p, "stack", string(debug.Stack()))
	if out.status != 0 {
		out.broken = true
		return
	}
	out.buf = out.buf[:0]
	out.w.Header().Set("Shale-Cost", costHeader(r.cost))
	out.failure(&apiError{typeInternal, http.StatusInternalServerError, fmt.Errorf("unexpected error: %v", p)})
}
