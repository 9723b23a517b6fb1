package loki

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Handler serves the API. It is safe for concurrent use. Its goroutines are those of the connections that follow lines,
// which Close ends.
type Handler struct {
	o       Options
	gate    *api.Gate
	metrics *metrics
	memory  *api.Memory
	origins api.Origins
	tails   *tails
}

// New returns a Handler.
func New(o Options) *Handler {
	o.setDefaults()
	m := newMetrics(o.Registerer)
	return &Handler{
		o: o, gate: api.NewGate(o.Slots, o.Limits.MaxWait, m.gate), metrics: m, memory: api.NewMemory(), origins: api.NewOrigins(o.CORSOrigin),
		tails: newTails(o.Limits.MaxTails),
	}
}

// Close ends the connections that follow lines, and waits for them; new ones are refused. The server does not know them any
// more, so that its own shutdown does neither. The engine must be open until then.
func (h *Handler) Close() error {
	h.tails.close()
	return nil
}

// The beginnings of the paths: Loki's own, and those from before it had a version.
const (
	current = "/loki/api/v1/"
	legacy  = "/api/prom/"
)

// Routes mounts the API below /loki/api/v1/ and /api/prom/: each path by itself, since others may have some there.
func (h *Handler) Routes(mux *http.ServeMux) {
	for path, handler := range map[string]http.Handler{
		current + "query_range":         h.endpoint("query_range", h.queryRange),
		current + "query":               h.endpoint("query", h.query),
		current + "labels":              h.endpoint("labels", h.labelNames),
		current + "label":               h.endpoint("labels", h.labelNames),
		current + "label/{name}/values": h.endpoint("label_values", h.labelValues),
		current + "series":              h.endpoint("series", h.series),
		current + "index/stats":         h.endpoint("index_stats", h.indexStats),
		current + "format_query":        h.open("format_query", h.withForm(h.formatQuery)),
		current + "status/buildinfo":    h.open("buildinfo", h.withForm(h.buildInfo)),
		current + "tail":                h.open("tail", h.withForm(h.tail)),
		legacy + "query":                h.endpoint("query_range", h.queryRange),
		legacy + "label":                h.endpoint("labels", h.labelNames),
		legacy + "label/{name}/values":  h.endpoint("label_values", h.labelValues),
		legacy + "series":               h.endpoint("series", h.series),
		legacy + "tail":                 h.open("tail", h.withForm(h.tail)),
	} {
		mux.Handle(path, handler)
	}
}

// request is a request whose parameters were read.
type request struct {
	*http.Request
	ctx     context.Context
	form    url.Values
	tenants []string
	quota   *model.Quota
	cost    *model.Cost
	legacy  bool // by one of the old paths
	began   time.Time
	queued  time.Duration // until it got its turn
	leave   func()        // gives up the turn, after the answer has been written; nil if it needed none
}

// answer is a successful result, which write writes.
type answer struct {
	write  func(*api.Body)
	status int // 0 means 200
	// contentType is that of what is written; JSON, as Loki spells it, if empty.
	contentType string
	// done says that nothing is to be written: there is nothing to be said, or the connection is not HTTP's any more.
	done bool
}

// server makes an answer out of a request.
type server func(http.ResponseWriter, *request) (*answer, error)

// endpoint serves what reads the store.
func (h *Handler) endpoint(name string, serve server) http.Handler {
	return h.open(name, h.withForm(h.withTurn(serve)))
}

// withTurn waits for the turn of the request and gives it tenants and a deadline.
func (h *Handler) withTurn(serve server) server {
	return func(w http.ResponseWriter, r *request) (_ *answer, err error) {
		if r.tenants, err = tenants(r.Header); err != nil {
			return nil, err
		}
		waits := time.Now()
		if err := h.enter(r.ctx); err != nil {
			return nil, err
		}
		r.leave, r.queued = h.gate.Leave, time.Since(waits)
		ctx, cancel := context.WithTimeout(r.ctx, h.o.Limits.Timeout)
		defer cancel()
		r.ctx = ctx
		return serve(w, r)
	}
}

// enter waits for a turn.
func (h *Handler) enter(ctx context.Context) error {
	err := h.gate.Enter(ctx)
	if errors.Is(err, model.ErrTransient) {
		err = errTurn{err}
	}
	return err
}

// headers are those of Loki's clients that scripts of other pages may send.
const headers = ", X-Loki-Response-Encoding-Flags, X-Query-Tags, X-Scope-OrgID"

// open serves anything: it writes the answer or the error.
func (h *Handler) open(name string, serve server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		l := &h.o.Limits
		r := &request{
			Request: hr, ctx: hr.Context(), cost: new(model.Cost), began: time.Now(),
			quota:  &model.Quota{MaxSeries: l.MaxSeries, MaxBytes: l.MaxBytes, Pool: h.o.Pool},
			legacy: len(hr.URL.Path) > len(legacy) && hr.URL.Path[:len(legacy)] == legacy,
		}
		out := api.NewBody(w, hr, h.memory, l.Timeout, r.cost)
		defer func() {
			if p := recover(); p != nil {
				e := h.panicked(name, p)
				if out.Status == 0 {
					failure(out, e)
				} else {
					out.Broken = true
				}
			}
			r.quota.Release()
			if r.leave != nil {
				r.leave()
			}
			out.Release()
			h.metrics.requests.WithLabelValues(name, strconv.Itoa(out.Status)).Inc()
			if out.Status != http.StatusSwitchingProtocols {
				h.metrics.seconds.WithLabelValues(name).Observe(time.Since(r.began).Seconds())
			}
			if out.Broken {
				// The client must not take what it got for the whole.
				panic(http.ErrAbortHandler)
			}
		}()
		h.origins.Allow(w.Header(), hr, headers)
		r.Body = &api.ChargedBody{ReadCloser: http.MaxBytesReader(w, r.Body, l.MaxBodyBytes), Quota: r.quota}
		a, err := serve(w, r)
		if err != nil {
			h.fail(out, name, r, err)
			return
		}
		send(out, a)
	})
}

func send(out *api.Body, a *answer) {
	if a.done {
		out.Status = a.status
		if a.status == http.StatusNoContent {
			out.W.WriteHeader(a.status)
		}
		return
	}
	if out.ContentType = a.contentType; out.ContentType == "" {
		out.ContentType = "application/json; charset=UTF-8"
	}
	a.write(out)
	status := a.status
	if status == 0 {
		status = http.StatusOK
	}
	out.Flush(status, true)
}

// withForm reads the parameters, from the URL and from the form of a POST.
func (h *Handler) withForm(serve server) server {
	return func(w http.ResponseWriter, r *request) (*answer, error) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodPost:
		case http.MethodOptions:
			return &answer{status: http.StatusNoContent, done: true}, nil
		default:
			w.Header().Set("Allow", "GET, HEAD, POST")
			return nil, &apiError{http.StatusMethodNotAllowed, errors.New("method " + r.Method + " is not allowed")}
		}
		if err := api.ParseForm(r.Request, h.o.Limits.MaxBodyBytes); err != nil {
			var tooLarge *http.MaxBytesError
			switch {
			case errors.As(err, &tooLarge):
				return nil, &apiError{http.StatusRequestEntityTooLarge, fmt.Errorf("the form is larger than %d bytes", tooLarge.Limit)}
			case api.IsRefusal(err):
				return nil, err
			}
			return nil, bad(err)
		}
		r.form = r.Form
		return serve(w, r)
	}
}

func (h *Handler) fail(out *api.Body, name string, r *request, err error) {
	e := classify(err)
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		e = &apiError{statusClientClosed, errors.New(textCanceled)}
	}
	if e.status >= http.StatusInternalServerError {
		h.o.Logger.Warn("request failed", "handler", name, "status", e.status, "err", err)
	}
	if e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable {
		out.W.Header().Set("Retry-After", "5")
	}
	failure(out, e)
}

// failure sends an error as Loki does: the text alone.
func failure(out *api.Body, e *apiError) {
	out.Buf = out.Buf[:0]
	out.ContentType = "text/plain; charset=utf-8"
	out.W.Header().Set("X-Content-Type-Options", "nosniff")
	out.Raw(e.text())
	out.Flush(e.status, true)
}

// panicked turns a bug into an error of one request.
func (h *Handler) panicked(name string, p any) *apiError {
	h.o.Logger.Error("panic", "handler", name, "panic", p, "stack", string(debug.Stack()))
	return &apiError{http.StatusInternalServerError, fmt.Errorf("unexpected error: %v", p)}
}
